"""Tabs in Gradio's own components: what they list, what their events may be sent, what they load."""

import json
import subprocess
import sys

import gradio as gr
import pytest

from decoders.registry import strategies
from explorer.catalog.origins import START
from explorer.catalog.papers import papers
from explorer.experiments import stored
from explorer.page.tabs import experiments as experiments_tab
from explorer.page.tabs.events import inputs
from explorer.page.tabs.methods import EVERY, found
from explorer.schema import Malformed, read


def test_methods_and_papers_are_found_by_words_and_family():
    count, heads, names, here, missing = found("", EVERY)
    assert json.loads(names)[: len(START)] == list(START), "what to try first"
    assert (
        sorted(json.loads(names)) == sorted(strategies()) and len(here) + len(missing) == len(papers()) == 193
    )
    works = sum(paper["status"] == "works" for paper in papers())
    assert count == f"{len(strategies())} methods from {works} papers" and len(here) == works and not heads
    assert (
        found("JACOBI  parallel zzz", EVERY)[0]
        == "Nothing found for “JACOBI  parallel zzz”. Try fewer words."
    )
    assert found("JACOBI  parallel zzz", EVERY)[1:] == ("", "[]", [], [])
    assert r"\<img src=x\>" in found("<img src=x>", EVERY)[0] and len(found("x y" * 999, EVERY)[0]) < 200
    for family in ("m:search", "p:diffusion"):
        _, _, names, *rows = found("", family)
        assert 0 <= len(json.loads(names)) < len(strategies()) and 0 < sum(map(len, rows)) < 193
    one = found("fast inference from transformers via", EVERY)
    assert one[0] == "2 methods · 1 paper here · 0 not here yet" and set(json.loads(one[2])) == {
        "speculative",
        "lenient",
    }
    assert one[3][0][1:] == [
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
    }.items(),
)
def test_a_method_is_found_by_the_names_that_people_use(words, method):
    assert json.loads(found(words, EVERY)[2])[0] == method


@pytest.mark.parametrize("name", ["Medusa", "EAGLE", "eagle-2"])
def test_what_is_no_lane_yet_is_found_and_says_what_there_is(name):
    count, heads, *_ = found(name, EVERY)
    assert "1 draft head" in count
    assert "There is no lane that drafts with it yet" in heads and "https://arxiv.org/abs/" in heads


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
        with pytest.raises(TypeError, match="what a File may be sent"):
            inputs(event(gr.File()))


@pytest.mark.parametrize("answer", stored(), ids=lambda answer: answer["name"])
def test_an_answer_is_told_whole_and_as_no_markup(answer):
    told = experiments_tab.heading(answer)
    plain = told.replace("\\", "")
    assert all(sentence.replace("\\", "") in plain for sentence in (answer["asks"], *answer["says"]))
    assert f"experiment {answer['name']}" in experiments_tab.measured(answer)
    rows, kinds = experiments_tab.cells(answer), experiments_tab.kinds(answer)
    assert len(rows) == len(answer["rows"]) and len(kinds) == len(answer["columns"])
    for row, given in zip(rows, answer["rows"], strict=True):
        for kind, cell, value in zip(kinds, row, given, strict=True):
            assert kind == "str" or not isinstance(cell, str)
            assert cell == (pytest.approx(value, abs=6e-4) if isinstance(value, float) else value)


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


def test_figures_are_loaded_when_one_is_looked_at_and_not_before():
    code = "import explorer.page.layout, sys; print('visualizers.figures' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip().endswith("False")
