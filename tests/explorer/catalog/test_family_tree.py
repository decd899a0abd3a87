"""The map of decoding: every method in one row below what it grew from, as HTML and as a poster."""

import re
import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from decoders.registry import FAMILIES, strategies
from explorer.catalog.method_cards import picture
from explorer.catalog.method_map import family_tree
from explorer.page.tabs.method_rows import anchor
from explorer.page.tabs.method_tree import tree
from visualizers.figures.poster import poster, rows

TREE = family_tree()


def test_every_method_has_one_parent_or_is_the_root():
    assert set(TREE) == set(strategies())
    assert [name for name, many in TREE.in_degree() if many == 0] == ["greedy"]
    assert nx.is_arborescence(TREE)
    assert TREE.nodes["speculative"]["exact"] and not TREE.nodes["fuzzy"]["exact"]


@pytest.mark.parametrize("columns", [1, 3])
def test_rows_hold_every_method_once_below_its_parent(columns):
    found = rows(TREE, FAMILIES, columns)
    assert sorted(row.name for row in found if not row.heading) == sorted(TREE)
    assert [row.name for row in found if row.heading] == list(FAMILIES.values())
    assert len({(row.column, row.at) for row in found}) == len(found)
    for row in found:
        if row.parent:
            assert TREE.has_edge(row.parent.name, row.name) and row.depth == row.parent.depth + 1
            assert (row.parent.column, row.parent.at) < (row.column, row.at)
    high = [max(row.at for row in found if row.column == column) for column in range(columns)]
    assert max(high) <= 1.35 * min(high)


def test_the_tree_names_every_method_with_its_year_and_change_and_leads_to_its_row():
    pictured = {"beam", "greedy"}
    html = re.sub(r"<img [^>]*", r"\g<0>/", tree(TREE, FAMILIES, pictured))  # as XML has it
    made = ET.fromstring(f"<div>{html}</div>")
    assert {one.get("src").split("/")[1] for one in made.iter("img")} == pictured
    links = {link.get("href"): "".join(link.itertext()) for link in made.iter("a")}
    assert links == {f"#{anchor(name)}": node["title"] for name, node in TREE.nodes(data=True)}
    assert "Speculative decoding 2022 · guesses tokens with a small model" in "".join(made.itertext())
    for item in made.iter("li"):
        for child in item.findall("ul/li"):
            names = [one.find("a").get("href").removeprefix("#method-") for one in (item, child)]
            assert TREE.has_edge(*names)
    assert made.find("p").text.startswith(f"{len(TREE)} methods from 2016 to ")


def test_the_poster_is_an_a2_svg_on_which_everything_fits():
    drawn = ET.fromstring(poster(TREE, FAMILIES))
    assert (drawn.get("width"), drawn.get("height")) == ("594mm", "420mm")
    name = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{name}circle")) == len(TREE)
    grown = [row for row in rows(TREE, FAMILIES, 3) if row.parent]
    assert len(drawn.findall(f"{name}path")) == len(grown)  # over the edge of a column, too
    for text in drawn.findall(f"{name}text"):
        size, words = float(text.get("font-size")), "".join(text.itertext())
        assert float(text.get("x")) + 0.54 * size * len(words) < 594 and float(text.get("y")) < 420


def test_a_picture_of_a_real_run_stands_beside_the_words_of_its_method():
    names = ["clasp", "rankgen", "beam", "speculative"]  # two of them with long sentences
    drawn = ET.fromstring(poster(TREE, FAMILIES, {name: picture(name, "light") for name in names}))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        tuple(float(one.get(key)) for key in ("x", "y", "width", "height"))
        for one in drawn.findall(f"{space}svg")
    ]
    assert len(boxes) == len(names)
    assert all(len(list(one)) > 5 for one in drawn.findall(f"{space}svg"))
    for text in drawn.findall(f"{space}text"):
        size, words = float(text.get("font-size")), "".join(text.itertext())
        left, y = float(text.get("x")), float(text.get("y"))
        right = left + 0.54 * size * len(words)
        for x, top, wide, high in boxes:
            assert right < x or left > x + wide or y < top or y - size > top + high, words
