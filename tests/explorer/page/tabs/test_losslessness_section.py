"""The losslessness test of the tab Microscope: what it counts, and what is said where nothing can be."""

import asyncio

import gradio as gr
import pytest

from decoders.speculative.losslessness import Proof
from explorer.page.tabs import losslessness
from explorer.page.tabs.losslessness import begin, progress
from explorer.page.tabs.on_screen import screen

ALL = [(0, 1, 99), (1, 2, 99)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(losslessness, "SLICE_SECONDS", 0.02)


def pages(count, *inputs, most: int = 10**6) -> list[dict]:
    """What the generator answers, one update after the other; it is left after `most` of them."""

    async def all_of() -> list[dict]:
        found = []
        async for update in count(*inputs):
            found.append(update)
            if len(found) >= most:
                break
        return found

    return asyncio.run(all_of())


def words(update: dict) -> str:
    return next(value for one, value in update.items() if getattr(one, "elem_id", "") == "losslessness-says")


def buttons(update: dict) -> list[bool]:
    return [value.visible for one, value in update.items() if isinstance(one, gr.Button)]


def test_seeds_are_counted_one_by_one_as_lanes_write_them(events, loader, run, value_of):
    made = pages(events["count_seeds"], value_of(ALL), "light", 1, 200, 2, 1.0, True)
    trace = run.records[1].trace
    own = Proof(
        "speculative", trace.prompt, loader.models, {**trace.parameters, "temperature": 1.0}, 2, 200, True
    )
    own.advance(600.0)
    assert words(made[0]) == losslessness.COMPUTING and buttons(made[0]) == [False, True]
    assert words(made[-2]) == progress(own.state()) and "200 seeds, " in words(made[-2])
    assert "Speculative decoding" in words(made[-2]) and "broken verifier" in words(made[-2])
    assert buttons(made[-1]) == [True, False]
    figure = next(value for one, value in made[-2].items() if isinstance(one, gr.Plot))
    assert figure.layout.title.text == "<b>Distance to the target's distribution</b>"


def test_a_test_that_is_left_counts_no_further(events, runs, value_of, monkeypatch):
    seeds = []
    counted = Proof.advance
    monkeypatch.setattr(Proof, "advance", lambda proof, s: (counted(proof, s), seeds.append(proof.done)))
    pages(events["count_seeds"], value_of(ALL), "light", 1, 4000, 2, 1.0, False, most=2)
    runs.on_worker(lambda: None).result()
    before = list(seeds)
    runs.on_worker(lambda: None).result()
    assert 0 < before[-1] < 4000 and seeds == before


def test_what_cannot_be_tested_is_said(events, runs, loader, run, value_of):
    def said(lanes=ALL, wanted=1, samples=200, length=2, temperature=1.0, other=None) -> str:
        asked = (value_of(lanes, other), "light", wanted, samples, length, temperature, False)
        made = pages(events["count_seeds"], *asked)
        assert buttons(made[-1]) == [True, False] and len(made) == 2
        return words(made[-1]).replace("\\", "")

    for temperature in (0, None, -1.0):
        assert said(temperature=temperature) == losslessness.COLD
    assert said(lanes=[(0, 1, 9)]) == losslessness.NO_LANE
    assert said(samples=None) == "Enter the number of seeds and the number of tokens per seed."
    assert "gone" in said(other={"run": "other"}) and "gone" in said(other={"session": "you" * 8})
    found = screen(runs, value_of(ALL))
    with pytest.raises(ValueError) as refused:
        begin(runs, loader, found, found.lanes[0], 1.0, 200, 2, False)
    assert str(refused.value) == (
        "Greedy does not draw its text from the target's distribution, so there is nothing to test."
    )
