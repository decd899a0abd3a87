"""Tabs in Gradio's own components: what they list, what their events may be sent, what they load."""

import html
import json
import re

import gradio as gr
import pytest

from decoders.registry import strategies
from explorer.catalog.origins import START
from explorer.catalog.papers import papers
from explorer.experiments import experiments, stored
from explorer.experiments.groups import GROUPS
from explorer.export.page_files import ASSETS
from explorer.page.tabs import experiments as experiments_tab
from explorer.page.tabs.events import inputs
from explorer.page.tabs.experiment_cards import card, catalogue, grouped, picture
from explorer.page.tabs.methods import EVERY, matches
from explorer.schema import Malformed, read
from visualizers.figures.theme import THEMES, theme


def test_the_tab_that_developers_are_shown_is_one():
    shown = (ASSETS.parent / "docs" / "page_code.md").read_text("utf-8").split("## A new tab")[1]
    code = shown.split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 10
    names: dict = {}
    exec(code, names)
    with gr.Blocks() as demo, gr.Tabs(), gr.Tab("New") as opened:
        names["build"](opened)
    (event,) = demo.fns.values()
    assert event.fn("greedy") == strategies()["greedy"].summary
    assert inputs(event), "the guard reads off its components what it may be sent"


def test_methods_and_papers_are_found_by_words_and_family():
    count, names, here = matches("", EVERY)
    assert json.loads(names)[: len(START)] == list(START), "what to try first"
    assert sorted(json.loads(names)) == sorted(strategies()) and len(here) == len(papers()) == 193
    works = sum(paper["status"] == "works" for paper in papers())
    assert count == f"{len(strategies())} methods from {works} papers"
    far = [row for row in papers() if row["status"] in ("miniature", "card")]
    assert len(here) == works + len(far) and len(matches("", EVERY, "card")[2]) < len(far)
    assert all(row[-1] == "miniature" for row in matches("", EVERY, "miniature")[2])
    assert (
        matches("JACOBI  parallel zzz", EVERY)[0]
        == "Nothing found for “JACOBI  parallel zzz”. Try fewer words."
    )
    assert matches("JACOBI  parallel zzz", EVERY)[1:] == ("[]", [])
    assert r"\<img src=x\>" in matches("<img src=x>", EVERY)[0] and len(matches("x y" * 999, EVERY)[0]) < 200
    for family in ("m:search", "p:diffusion"):
        _, names, rows = matches("", family)
        assert 0 <= len(json.loads(names)) < len(strategies()) and 0 < len(rows) < 193
    whole_title = matches("Fast Inference from Transformers via Speculative Decoding", EVERY)
    assert json.loads(whole_title[1])[0] == "speculative", "of equal matches, what to try first"
    one = matches("fast inference from transformers via", EVERY)
    assert one[0] == "2 methods · 1 paper here" and set(json.loads(one[1])) == {
        "speculative",
        "lenient",
    }
    assert one[2][0][1:] == [
        "Leviathan et al.",
        "2022",
        "[arXiv](https://arxiv.org/abs/2211.17192)",
        "✓ works: Speculative decoding",
    ]


@pytest.mark.parametrize(
    ("words", "method"),
    {
        "nucleus": "sample",
        "top-p sampling": "sample",
        "assisted generation": "speculative",
        "Leviathan": "speculative",
        "chen 2023": "speculative",
        "contrastive": "contrastive_decoding",
        "beam": "beam",
        "REST": "rest",
        "DoLa": "dola",
        "self-consistency": "mbr",
        "Santilli": "jacobi",
        "Medusa": "medusa",
        "eagle-2": "eagle2",
    }.items(),
)
def test_a_method_is_found_by_the_names_that_people_use(words, method):
    assert json.loads(matches(words, EVERY)[1])[0] == method


def event(*components):
    """An event of a page with these inputs."""
    button = gr.Button()
    button.click(lambda *given: None, list(components), None)
    return list(gr.context.Context.root_block.fns.values())[-1]


def test_an_event_takes_what_its_components_can_hold_and_nothing_else():
    with gr.Blocks():
        model = inputs(event(gr.Dropdown(["a", "b"]), gr.Textbox(), gr.Checkbox(), gr.Number()))
        names = list(model.model_fields)
        for sound in (["a", "x", True, 3.5], [None, None, False, None]):
            assert list(read(model, dict(zip(names, sound, strict=True))).model_dump().values()) == sound
        for odd in (
            ["c", "x", True, 1],
            [["a"], "x", True, 1],
            ["a", 3, True, 1],
            ["a", "x", "yes", 1],
            ["a", "x" * 20_001, True, 1],
            ["a", "x", True, {}],
        ):
            with pytest.raises(Malformed) as told:
                read(model, dict(zip(names, odd, strict=True)))
            assert str(told.value).startswith("input_") and len(str(told.value)) < 200
        with pytest.raises(TypeError, match="the type of a File's value"):
            inputs(event(gr.File()))


@pytest.mark.parametrize("answer", stored(), ids=lambda answer: answer["name"])
def test_an_answer_is_told_whole_and_as_no_markup(answer):
    told = f"{experiments_tab.heading(answer)} {experiments_tab.sentences(answer)}"
    plain = told.replace("\\", "")
    words = (answer["title"], answer["finding"], answer["asks"], *answer["says"])
    assert all(sentence.replace("\\", "") in plain for sentence in words)
    assert f"experiment {answer['name']}" in experiments_tab.measured(answer)
    table, kinds = experiments_tab.shaded(answer), experiments_tab.kinds(answer)
    assert table.data.to_numpy().tolist() == answer["rows"] and len(kinds) == len(answer["columns"])
    for row in answer["rows"]:
        assert all(kind == "str" or not isinstance(cell, str) for kind, cell in zip(kinds, row, strict=True))


def test_a_table_is_shaded_by_column_and_says_its_numbers():
    """The first column, words, and a column of one value are plain."""
    answer = {"columns": ["K", "a", "b", "c", "d"], "rows": [[1, 0.0, 5, "x", None], [2, 0.5, 5, "y", 1.0]]}
    answer["rows"].append([3, 1.0, 5, "z", 3.0])
    made = experiments_tab.shaded(answer)._compute()
    styles = {(row, column): dict(found) for (row, column), found in made.ctx.items()}
    darkest = f"{experiments_tab.DARKEST}%"
    assert [share_of(styles, row, 1) for row in range(3)] == ["0%", "16%", darkest] and darkest == "32%"
    assert [share_of(styles, row, 4) for row in range(3)] == [None, "0%", darkest]
    assert not any(share_of(styles, row, column) for row in range(3) for column in (0, 2, 3))
    shown = [
        [made._display_funcs[row, column](made.data.iloc[row, column]) for column in range(5)]
        for row in (0, 2)
    ]
    assert shown == [["1", "0.000", "5", "x", "—"], ["3", "1.000", "5", "z", "3.000"]]


def share_of(styles: dict, row: int, column: int) -> str | None:
    """How much of the text's colour is in a cell."""
    found = re.search(r"(\d+%)", styles.get((row, column), {}).get("background-color", ""))
    return found[1] if found else None


@pytest.mark.parametrize("look", THEMES)
def test_text_on_the_darkest_cell_can_be_read(look):
    """At least 4.5 to 1, in grey as in colour: the shades are mixed of the text's colour and the ground's."""
    surface, share = theme(look).surface, experiments_tab.DARKEST / 100
    text, ground = (rgb(surface[name]) for name in ("text", "bg"))
    cell = [share * a + (1 - share) * b for a, b in zip(text, ground, strict=True)]
    light, dark = sorted((luminance(text), luminance(cell)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 4.5


def rgb(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def luminance(colour: list[float]) -> float:
    """As WCAG defines it."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_catalogue_has_a_card_for_each_answer_the_most_surprising_first():
    made = catalogue(stored(), "")
    listed = [name for names in GROUPS.values() for name in names]
    assert re.findall(r'href="#experiment=([\w-]+)"', made) == listed
    assert made.count("<svg") == len(listed) == len(experiments()) > 40
    assert re.findall("<h3>(.*?)</h3>", made) == list(GROUPS)
    for answer in stored():
        assert f"<b>{html.escape(answer['title'])}</b> {html.escape(answer['finding'])}" in made


def test_the_catalogue_is_searched_by_words():
    """In titles first, then in findings, then in all that is said; a group without a hit is left out."""
    names = lambda words: re.findall(r'href="#experiment=([\w-]+)"', catalogue(stored(), words))
    assert names("draft long")[0] == "draft-length" and names("HEART stories") == ["hyperfitting"]
    assert names("sequoia") and len(names("sequoia")) < 8 and "acceptance-by-rank" in names("sequoia")
    assert "<h3>Search for right answers" not in catalogue(stored(), "HEART stories")
    nothing = catalogue(stored(), "<img src=x> " + "y" * 200)
    assert nothing.startswith("<p>No experiment matches “&lt;img src=x&gt; y") and len(nothing) < 160


def test_a_card_shows_the_curves_of_its_chart_and_takes_words_for_no_markup():
    answer = {
        "name": "x-y",
        "title": "<b>?",
        "finding": "A & B.",
        "chart": {
            "log": True,
            "lines": [{"points": [[1, 0.0], [10, None], [100, 1.0]]}, {"points": [[10, 0.5]]}],
        },
    }
    made = card(answer)
    assert "<b>&lt;b&gt;?</b> A &amp; B." in made
    assert 'class="first" stroke-dasharray="" points="5.0,63.0 111.0,5.0"' in made
    assert 'points="58.0,34.0"' in made and made.count("<circle") == 3


def test_a_table_without_a_chart_is_a_picture_of_shades():
    answer = {"name": "x", "rows": [["a", 1, None], ["b", 3, 0.5]], "chart": None}
    assert re.findall(r'fill-opacity="([\d.]+)"', picture(answer)) == ["0.08", "0.78", "0.43"]


def test_an_answer_without_a_group_is_shown_all_the_same():
    own = {**stored()[0], "name": "my-own"}
    assert list(grouped([*stored(), own]))[-1] == "Others" and grouped([*stored(), own])["Others"] == [own]


def test_markdown_and_markup_in_words_are_shown_as_they_are():
    assert experiments_tab.escaped("pg_td <b> `x` *y*") == r"pg\_td \<b\> \`x\` \*y\*"
    picture = {
        "title": "<i>T</i>",
        "says": "&",
        "begin": ["<script>"],
        "columns": ["a"],
        "texts": [[[["one ", ""], ["<b>two</b>", "again"]]]],
    }
    made = experiments_tab.passages(picture)
    assert '<mark class="again">&lt;b&gt;two&lt;/b&gt;</mark>' in made and "<script>" not in made
