"""The view of draws: a column per token of the first text, draws downwards, the estimate of Z above."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.sampling.draws import Draws

WORDS = ["p", "a", "b", "c"]


def weighed(node: int, estimate: float, checks: int, text: int = 1) -> Score:
    return Measure(node, "log weight", -0.5, {"estimate": estimate, "checks": checks, "text": float(text)})


def steps() -> list[list]:
    """`a` is forbidden, `b` is taken, `c` serves the estimate; a second text draws `c` alone."""
    first = [Distribution(0, "target", [(1, -0.1)], 0.1, 1.0, among=4)]
    first += [Propose(1, 0, 1, -0.7, "target", 0), Verdict(1, "rejected")]
    first += [Propose(2, 0, 2, -0.7, "target", 0), Propose(3, 0, 3, -0.7, "target", 0), Verdict(3, "pruned")]
    first += [weighed(2, 0.5, 5), Propose(4, 0, 3, -0.7, "target", 1), weighed(4, 0.2, 1, 2)]
    return [first, [Propose(5, 2, 1, -0.1, "target", 0), weighed(5, 1.0, 2), Commit([2, 5], [-0.7, -0.1])]]


def test_draws_stand_below_each_other_in_their_order():
    marks, ops = fold(Draws, steps(), [0], WORDS)
    cells = {(m["x"], m["y"]): (m["text"], m["glyph"], m["state"]) for m in of_kind(marks, "cell")}
    assert cells == {
        (1, 0.5): ("a", "✕", "rejected"),
        (1, 1.5): ("b", "✓", "chosen"),
        (1, 2.5): ("c", "✓", "live"),
        (2, 0.5): ("a", "✓", "chosen"),
    }
    assert [(m["x"], m["y1"]) for m in of_kind(marks, "bar")] == [(1, 0.5), (2, 1.0)]
    assert [m["text"] for m in of_kind(marks, "label")] == ["+2", "+1"]  # checks that are not recorded singly
    summary = marks["heading"]
    assert summary["lead"] == "7 checks for 2 tokens"
    assert summary["heading"] == ", the first of 2 texts; a mask would make 8."
    assert ops[0][-1] == {"say": "3 tokens drawn, 1 forbidden; Z is estimated as .50."}


@pytest.fixture(scope="module")
def llama_tiny():
    return load("llama-tiny")


def test_a_real_run_shows_every_check_of_the_first_text(llama_tiny):
    asked = {"constraint": "regex", "constraint_text": "[a-z]+, [0-9]+", "temperature": 1.0}
    lane = Lane(
        "awrs", llama_tiny.encode("Once upon a time"), {"target": llama_tiny}, asked, limits=Limits(8)
    )
    trace = lane.run()
    marks, _ = fold(Draws, [step.events for step in trace.steps], trace.prompt, [])
    drawn = sum(e.slot == 0 for step in trace.steps for e in step.of(Propose))
    assert len(of_kind(marks, "cell")) == drawn > 8
