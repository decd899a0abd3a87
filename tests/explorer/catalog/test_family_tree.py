"""The map of decoding: each method has a card in the column of its year, near its branch; page and poster."""

import re
import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from decoders.registry import FAMILIES, strategies
from explorer.catalog.method_cards import thumbnail
from explorer.catalog.method_map import branch_of, family_tree
from explorer.page.tabs.method_map import method_map
from explorer.page.tabs.method_rows import anchor
from visualizers.figures.decoding_map import NAME, POINT, SAYS, Sheet, near, poster, wrapped
from visualizers.figures.outlines import UNIT, span_width
from visualizers.graphs.branches import grid

TREE = family_tree()
SVG = "{http://www.w3.org/2000/svg}"


def test_every_method_has_one_parent_or_is_the_root():
    assert set(TREE) == set(strategies())
    assert [name for name, many in TREE.in_degree() if many == 0] == ["greedy"]
    assert nx.is_arborescence(TREE)
    assert TREE.nodes["speculative"]["exact"] and not TREE.nodes["fuzzy"]["exact"]


def test_a_method_is_of_the_branch_that_it_or_a_parent_in_its_family_begins():
    assert branch_of("medusa") == branch_of("hydra") == branch_of("blockwise") == "Draft heads"
    assert branch_of("mbr") == "Samples and scores"  # its parent is of another family
    assert all(branch for _, branch in TREE.nodes(data="branch"))


def test_every_method_has_a_cell_of_its_own_in_the_column_of_its_year_and_the_band_of_its_family():
    placed = grid(TREE, FAMILIES)
    assert set(placed.places) == set(TREE) and len(placed.at) == len(TREE)
    bands = {band.family: band for band in placed.bands}
    for name, (column, row) in placed.places.items():
        node = TREE.nodes[name]
        years = next(one for one in placed.years if node["year"] in one.years)
        assert years.first <= column < years.first + years.wide
        assert 0 <= row - bands[node["family"]].row < bands[node["family"]].tall
    columns, rows = placed.size
    assert columns * rows < 3 * len(TREE)  # the sheet is not left empty


def test_a_row_of_a_new_year_and_branch_finds_room():
    more = TREE.copy()
    more.add_node("new", **{**TREE.nodes["wedlm"], "year": "2031", "branch": "A new one", "title": "New"})
    more.add_edge("wedlm", "new")
    assert "2031" in grid(more, FAMILIES).years[-1].label
    assert "new" in grid(more, FAMILIES).places


def test_the_map_has_a_link_with_a_sentence_for_every_method():
    pictured = {"beam", "greedy"}
    html = re.sub(r"<img [^>]*", r"\g<0>/", method_map(TREE, FAMILIES, pictured))  # as XML has it
    made = ET.fromstring(html)
    assert {one.get("src").split("/")[2] for one in made.iter("img")} == pictured
    links = {one.get("href"): one for one in made.iter("a")}
    assert set(links) == {f"#{anchor(name)}" for name in TREE}
    medusa = links["#method-medusa"]
    assert medusa.get("aria-label").startswith("Medusa 2024: drafts with heads on the target's own state")
    assert medusa.get("data-parent") == "blockwise"
    lines = {one.get("data-to") for one in made.iter("path")} - {None}
    assert lines == {child for _, child in TREE.edges}
    assert [b.text for b in made.iter("button")][: len(FAMILIES)] == list(FAMILIES.values())
    assert any(p.text.startswith(f"{len(TREE)} methods from 2016 to ") for p in made.iter("p"))


def test_the_poster_is_an_a2_svg_on_which_every_word_has_at_least_5_points_and_fits():
    drawn = ET.fromstring(poster(TREE, FAMILIES))
    assert (drawn.get("width"), drawn.get("height")) == ("420mm", "594mm")
    assert not list(drawn.iter(f"{SVG}text"))  # outlines alone
    words = [group for group in drawn.iter(f"{SVG}g") if group.get("class") == "words"]
    assert len(words) > 3 * len(TREE)
    for group in words:
        x, y, scale = map(
            float, re.match(r"translate\((\S+) (\S+)\) scale\((\S+)", group.get("transform")).groups()
        )
        size = scale * UNIT
        assert size >= 5 * POINT - 1e-3, group.get("aria-label")
        assert x + span_width(group.get("aria-label"), True) * size < 420 and y < 594


def test_the_words_of_a_card_stay_in_it_and_leave_room_for_its_picture():
    sheet = Sheet(grid(TREE, FAMILIES))
    for name, node in TREE.nodes(data=True):
        _, _, wide, high = sheet.card(name)
        titles, says = (
            wrapped(f"{node['title']} {node['year']}", NAME, wide - 1.6, True),
            wrapped(node["differs"], SAYS, wide - 1.6),
        )
        assert all(span_width(line, True) * NAME <= wide - 1.2 for line in titles), titles
        assert all(span_width(line, False) * SAYS <= wide - 1.6 for line in says)
        assert high - 1.12 * (NAME * len(titles) + SAYS * len(says)) > 1.5, name


def test_a_picture_of_a_real_run_stands_on_the_card_of_its_method():
    names = ["clasp", "rankgen", "beam", "speculative"]
    drawn = ET.fromstring(poster(TREE, FAMILIES, {name: thumbnail(name, "light") for name in names}))
    sheet = Sheet(grid(TREE, FAMILIES))
    boxes = [
        tuple(float(one.get(k)) for k in ("x", "y", "width", "height")) for one in drawn.findall(f"{SVG}svg")
    ]
    assert len(boxes) == len(names) and all(len(list(one)) > 2 for one in drawn.findall(f"{SVG}svg"))
    cards = [sheet.card(name) for name in names]
    for x, y, wide, high in boxes:
        assert any(a <= x and b <= y and x + wide <= a + c and y + high <= b + d for a, b, c, d in cards)


@pytest.mark.parametrize(("end", "point"), [((0, 10), (0, 1.2)), ((0, 1), (0, 0.5)), ((0, 0), (0, 0))])
def test_a_corner_is_round_as_far_as_its_line_is_long(end, point):
    assert near((0, 0), end) == pytest.approx(point)
