"""The draft doctor in the page: the words of the command, progress, refusals, and the file."""

import asyncio
from pathlib import Path

import gradio as gr
import pytest

from explorer.acceptance import drafters
from explorer.acceptance.drafters import Drafter
from explorer.doctor.examining import Examination
from explorer.doctor.words import canary_rows, verdict
from explorer.page.tabs import acceptance
from tests.helpers.page_answers import pages


def words(update: dict) -> str | None:
    return next((v for one, v in update.items() if getattr(one, "elem_id", "") == "doctor-says"), None)


@pytest.fixture
def with_draft(loader, monkeypatch):
    """The page's draft is a small one of the target's tokens."""
    target, draft = loader.models["target"], loader.models["draft"]
    own = Drafter("its draft", "speculative", {"target": target, "draft": draft}, draft)
    monkeypatch.setattr(drafters, "drafter", lambda *given: own)


def test_it_says_what_the_command_says(events, with_draft):
    made = pages(events["examine"], "", "light", "its draft", 2)
    assert words(made[0]) == "Loading the draft …" and words(made[1]) == "0 of 1 texts are read."
    last = made[-1]
    found = next(value for one, value in last.items() if isinstance(value, Examination))
    assert f"**{acceptance.escaped(verdict(found))}**" in words(last)
    shown = next(value for one, value in last.items() if isinstance(one, gr.Dataframe))
    assert shown == canary_rows(found)
    titles = [v.layout.title.text for one, v in last.items() if isinstance(one, gr.Plot)]
    assert titles[0] == "<b>Overlap along each text</b>" and len(titles) == 3
    file = asyncio.run(events["examination_saved"](found, "python -m explorer doctor"))
    assert "python -m explorer doctor" in Path(file).read_text("utf-8")
    assert asyncio.run(events["examination_saved"](None, "")) is None


def test_an_examination_that_is_left_gives_its_slots_back(events, with_draft, runs, loader, monkeypatch):
    monkeypatch.setattr(acceptance, "SLICE_SECONDS", 0.001)
    cache = loader.models["target"].engine.cache
    runs.on_worker(lambda: None).result()
    free = len(cache.free)
    pages(events["examine"], "", "light", "its draft", 2, most=3)
    runs.on_worker(lambda: None).result()
    assert len(cache.free) == free


def test_what_cannot_be_examined_is_said(events):
    for name, drafted, sentence in (
        (None, 0, "Choose a draft"),
        ("prompt_lookup", 0, "without a model or head"),
        ("llama-tiny-fastdraft", 0, "has another tokenizer than the target"),
        ("prompt_lookup", 13, "a length from 0 to 12"),
    ):
        assert sentence in words(pages(events["examine"], "", "light", name, drafted)[-1])
