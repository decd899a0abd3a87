"""The microscope's server functions: what a page may ask, and the sentences for what it may not."""

import asyncio

import pytest

from decoders.speculative.losslessness import Proof
from explorer.page import losslessness, microscope
from explorer.page.microscope import levels
from tests.helpers.server_calls import ask

ME = "me" * 12
LANES = [
    {"strategy": "greedy"},
    {"strategy": "speculative", "parameters": {"temperature": 1.0, "top_k": 8}},
]
ASKED = {"lane": 1, "temperature": 1.0, "samples": 20, "length": 2, "broken": True}


@pytest.fixture
def run(runs):
    made = runs.start({"prompt": "Once the cat", "max_new_tokens": 8, "lanes": LANES}, ME)
    every = [{"view": "text", "ops": 2**31, "rows": 2**31} for _ in LANES]
    while made.state == "running":
        asyncio.run(runs.pull(made.id, every, 2.0, "running"))
    return made


def answer(function, **request) -> dict:
    return ask(function, request)


def test_a_proof_counts_seed_by_seed_what_lanes_write(runs, loader, run):
    prove, proof = losslessness.functions(runs, loader)
    name = answer(prove, run=run.id, **ASKED)["proof"]
    state = answer(proof, proof=name)
    while state["done"] < 20:
        state = answer(proof, proof=name)
    trace = run.records[1].trace
    parameters = {**trace.parameters, "temperature": 1.0}
    own = Proof("speculative", trace.prompt, loader.models, parameters, 2, 20, True)
    own.advance(600.0)
    assert state == own.state() and [way["name"] for way in state["ways"]] == [
        "Speculative decoding",
        "broken verifier",
    ]


def test_what_cannot_be_proved_is_said(runs, loader, run):
    prove, proof = losslessness.functions(runs, loader)

    def said(**other) -> str:
        return answer(prove, **{"run": run.id, **ASKED, **other})["error"]

    assert said(lane=0) == "Greedy does not draw its text from the target's law, so nothing is to be proved."
    assert "At temperature 0 every seed" in said(temperature=0)
    assert said(samples=10**6) == "A proof takes 1 to 10,000 seeds, not 1,000,000."
    assert said(length=1) == "A proof takes 2 to 6 tokens, not 1."
    assert "gone" in said(run="other") and "Press Prove" in answer(proof, proof="other")["error"]


def test_the_microscope_shows_a_lane_that_drafts_whatever_is_asked(runs, loader, run):
    seen, what_if = microscope.functions(runs, loader)
    for lane in (None, 0, 1):
        found = answer(seen, run=run.id, lane=lane)
        assert found["drafting"] == [1] and found["lane"] == 1 and found["found"]["metrics"]
    other = answer(what_if, run=run.id, lane=1, widths="2, 1", stop_below=0.1)
    assert other["own"]["widths"] == [2, 1] and not other["exact"]
    for widths in ("", "two", "3 x", "1 " * 500, "²"):
        assert (
            "Write one to 32 whole numbers"
            in answer(what_if, run=run.id, lane=1, widths=widths, stop_below=0)["error"]
        )
    assert levels("3 2,1") == [3, 2, 1]
