"""Acceptance over many prompts in the page: the numbers of the command, progress, limits, and the file."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from pydantic import ValidationError, create_model

from explorer.acceptance.drafters import drafter
from explorer.acceptance.measuring import Settings, report
from explorer.acceptance.prompts import Prompt
from explorer.page.tabs import acceptance
from explorer.page.tabs.acceptance import MANY, NONE, file_text, metric_table, prompt_rows
from explorer.page.tabs.events import kind
from tests.helpers.page_answers import pages

TEXTS = "Once the cat sat\n\nthe cat and the cat"
SETTINGS = (8, 3, 0.0)


def words(update: dict) -> str | None:
    return next((v for one, v in update.items() if getattr(one, "elem_id", "") == "acceptance-says"), None)


def tables(update: dict) -> dict:
    return {one.label: value for one, value in update.items() if isinstance(one, gr.Dataframe)}


def asked(
    text: str = TEXTS, one: str | None = "prompt_lookup", other: str = NONE, how: tuple = SETTINGS
) -> tuple:
    return "", "light", text, one, other, *how


@pytest.fixture(scope="module")
def measured(events):
    return pages(events["measure"], *asked(other="layerskip"))


def test_it_shows_the_report_of_the_command(measured, loader):
    target = loader.models["target"]
    wanted = report(
        target,
        [drafter(name, target) for name in ("prompt_lookup", "layerskip")],
        [Prompt("Once the cat sat"), Prompt("the cat and the cat")],
        Settings(8, 3, 0.0, 0),
    )
    last = measured[-1]
    assert (
        next(value for one, value in last.items() if isinstance(value, dict) and isinstance(one, gr.State))
        == wanted
    )
    shown = tables(last)
    assert shown["vLLM's metrics, by drafter"] == metric_table(wanted)
    assert (
        shown["Prompts, worst first: a click opens the lanes of a row"] == prompt_rows(wanted)
        and len(prompt_rows(wanted)) == 4
    )
    titles = [v.layout.title.text for one, v in last.items() if isinstance(one, gr.Plot)]
    assert len(titles) == 6 and "<b>Why rounds ended</b>" in titles[0]
    assert "**prompt\\_lookup**" in words(last) and "**layerskip**" in words(last)


def test_a_click_on_a_prompt_opens_the_lanes_that_were_measured(events, measured, runs):
    made = next(
        value for one, value in measured[-1].items() if isinstance(value, list) and isinstance(one, gr.State)
    )
    visit, row = json.dumps({"session": "me" * 12}), SimpleNamespace(row_value=[2, "the cat"])
    answer, says = asyncio.run(events["open_prompt"](visit, made, row))
    found = json.loads(answer)
    run = runs.find(found["run"])
    assert says == "" and run.session == "me" * 12 and found["file"] == "prompt 2 of the report"
    assert [one.trace for one in run.records] == [one.traces[1] for one in made]
    answer, says = asyncio.run(events["open_prompt"](visit, None, row))
    assert json.loads(answer)["error"] == says.replace("\\", "") == "The report is gone; measure it again."


def test_it_says_how_far_it_is(measured):
    told = [words(one) for one in measured]
    assert told[0] == "Loading the drafters …" and told[1] == "0 of 6 texts are decoded."
    assert all(one.endswith(" of 6 texts are decoded.") for one in told[1:-1])
    stop = [[b.visible for one, b in page.items() if isinstance(one, gr.Button)] for page in measured]
    assert stop[0] == [False, True] and stop[-1][-2:] == [True, False]


def test_a_report_that_is_left_gives_its_slots_back(events, runs, loader, monkeypatch):
    monkeypatch.setattr(acceptance, "SLICE_SECONDS", 0.001)
    cache = loader.models["target"].engine.cache
    runs.on_worker(lambda: None).result()
    free = len(cache.free)
    pages(events["measure"], *asked(), most=3)
    runs.on_worker(lambda: None).result()
    assert len(cache.free) == free


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (asked(text=" \n"), "The field contains no prompt; write one per line."),
        (
            asked(text="a\n" * (MANY + 1)),
            f"The field contains {MANY + 1} prompts; a report takes at most {MANY}.",
        ),
        (asked(text='{"text": 3}'), "The field, line 1 has no prompt"),
        (asked(one=None), "Choose a drafter."),
        (asked(one="llama-tiny-fastdraft"), "has another tokenizer than the target"),
        (asked(how=(None, 3, 0.0)), "Enter the number of new tokens"),
        (asked(how=(500, 3, 0.0)), "At most 96 tokens per prompt"),
    ],
)
def test_what_cannot_be_measured_is_said(events, inputs, sentence):
    made = pages(events["measure"], *inputs)
    assert sentence in words(made[-1]).replace("\\", "") and len(made) == 2


def test_files_of_prompts_are_checked():
    lines = '{"prompt": "Once", "category": "story"}\n'
    assert file_text("a.jsonl", lines.encode()) == lines
    for data, sentence in (
        (b"\xff\xfe", "a is not UTF-8 text"),
        (b"x" * 20_001, "20,001 characters"),
        (b"", "a contains no prompt"),
    ):
        with pytest.raises(ValueError, match=sentence):
            file_text("a", data)


def test_the_report_is_saved_as_the_command_s_page(events, measured):
    found = next(v for one, v in measured[-1].items() if isinstance(one, gr.State) and isinstance(v, dict))
    file = asyncio.run(events["saved"](found, "python -m explorer acceptance"))
    page = Path(file).read_text("utf-8")
    assert page.startswith("<!doctype html>") and "python -m explorer acceptance" in page
    assert asyncio.run(events["saved"](None, "")) is None


def test_drafters_are_small_models_and_strategies_that_draft_by_themselves():
    names = acceptance.drafters()
    assert {"llama-tiny-draft-distilled", "medusa", "kangaroo"} <= set(names)
    assert not {"llama-tiny", "speculative", "greedy"} & set(names)


def test_strategies_that_draft_are_offered_once_the_tab_is_opened(events):
    given = asyncio.run(events["offered"]())
    first, second = given.values()
    names = acceptance.drafters()
    assert [value for _, value in first.choices] == names
    assert [value for _, value in second.choices] == [NONE, *names]
    for component, update in given.items():
        taken = create_model("Taken", one=(kind(component), ...))
        assert taken(one=names[-1]).one == names[-1] == update.choices[-1][1]
        with pytest.raises(ValidationError, match="one of the choices"):
            taken(one="greedy")
