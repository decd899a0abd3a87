"""Each step as a sentence: its numbers are those of the events, and every step of every strategy has one."""

import math
import re

import pytest

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.events import Cell, Commit, Distribution, Note, Propose, Score, Step, Verdict
from tests.helpers.view_folding import vocabulary
from visualizers.registry import deltas
from visualizers.scene.marks import Header

WORDS = ["Once", " a", " big", " dog", "<b>", "."]


def said(*steps: list) -> list[str]:
    """The sentences of hand-made steps after the prompt "Once a"."""
    header = Header([0, 1], vocabulary(*WORDS), {})
    made = deltas("text", header, [Step(i, events) for i, events in enumerate(steps)])[1]
    return [op["say"] for delta in made for op in delta["ops"] if "say" in op]


def log(p: float) -> float:
    return math.log(p)


def test_a_chosen_token_with_what_was_next_and_what_was_likelier():
    offered = [Distribution(1, "target", [[2, log(0.63)], [3, log(0.12)]], 0.25, math.log(2) * 1.5)]
    top = [*offered, Propose(2, 1, 2, log(0.63), "target"), Commit([2], [log(0.63)])]
    assert said(top) == ["Step 1: “␣big” (p .63, next “␣dog” .12, entropy 1.50 bits)."]
    drawn = [*offered, Propose(2, 1, 3, log(0.12), "target"), Commit([2], [log(0.12)])]
    assert said(drawn) == ["Step 1: “␣dog” (p .12, top-1: “␣big” .63, entropy 1.50 bits)."]


def test_a_round_with_its_rejection_and_a_note():
    events = [
        Propose(2, 1, 2, -0.1, "draft"),
        Propose(3, 2, 3, -0.1, "draft"),
        Verdict(2, "accepted", p=0.9, q=0.8),
        Verdict(3, "rejected", p=0.07, q=0.21, u=0.71),
        Propose(4, 2, 4, -0.1, "target"),
        Verdict(4, "resampled"),
        Commit([2, 4], [-0.1, -0.2]),
        Note("It stopped early."),
    ]
    assert said(events) == [
        "Round 1: 1 of 2 drafted tokens accepted; “␣dog” rejected (p .07, q .21, u .71), "
        "“<b>” written instead. It stopped early."
    ]


def test_a_round_that_ends_with_the_bonus_token():
    events = [
        Propose(2, 1, 2, -0.1, "draft"),
        Verdict(2, "accepted", p=0.9, q=0.8),
        Propose(3, 2, 3, -0.1, "target"),
        Verdict(3, "bonus"),
        Commit([2, 3], [-0.1, -0.2]),
    ]
    assert said(events) == ["Round 1: 1 of 1 drafted token accepted; bonus token “␣dog”."]


def test_beams_and_iterations():
    beams = [
        Propose(2, 1, 2, -0.5, "target"),
        Propose(3, 1, 3, -1.5, "target"),
        Score(2, "sum_logprob", -0.5, rank=1),
        Verdict(3, "pruned"),
    ]
    assert said(beams) == ["Step 1: “…␣big” leads with Σ log p −0.50; 1 live, 1 pruned."]
    cells = [Cell(2, 1, 2, "settled"), Cell(3, 1, 3, "changed"), Cell(4, 1, 5, "kept")]
    assert said([], cells) == [
        "Step 1: nothing is final yet.",
        "Iteration 1: 1 position settled (“␣big”), 1 changed, 1 kept.",
    ]


@pytest.mark.parametrize("name", strategies())
def test_every_step_of_every_strategy_has_one_sentence_with_a_number(name, target_for, tiny_model, prompt):
    models = {"target": target_for(name), "draft": tiny_model(seed=1)}
    trace = Lane(name, prompt, models, {}, 0, Limits(6)).run()
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    for delta in deltas("text", header, trace.steps)[1]:
        (sentence,) = [op["say"] for op in delta["ops"] if "say" in op]
        assert re.match(r"(Step|Round|Iteration) \d+: |First guess: ", sentence) and sentence.endswith(".")
