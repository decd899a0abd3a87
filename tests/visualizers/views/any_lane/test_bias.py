"""Bias: both laws of every token as stacked bars, and how far the mask overdoes the token that was taken."""

import pytest

from decoders.registry import get
from decoders.trace.events import Commit, Propose, Step
from decoders.trace.scores import OTHERS, Table
from visualizers.registry import build
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.bias import factor, in_words

WORDS = {0: b"cat", 1: b"dog", 2: b"cow"}
LAWS = [[0.0, 0.8, 0.2], [1.0, 0.1, 0.7], [OTHERS, 0.1, 0.1]]  # token, under the mask, of the model
EXACT = Table(1, "bias", 0.4, {"kept": 0.2}, "exact", unit="token", rows=LAWS)
ESTIMATED = [[2.0, 0.5, 0.6, 0.1], [OTHERS, 0.5, 0.4, 0.1]]  # and the standard error
PARTS = {"kept": 0.2, "texts": 16.0, "worth": 2.5}
DRAWN = Table(2, "bias", 0.1, PARTS, "estimated", unit="token", rows=ESTIMATED)
ONLY = Table(3, "bias", 0.0, {"kept": 0.1}, "exact", unit="token", rows=[[1.0, 1.0, 1.0]])


def ops_of(*scores) -> list[list[dict]]:
    """The ops of steps that commit a token each: cat, cow, dog."""
    seen = build("bias", Header([5], WORDS, {}, "lane"))
    assert to_json(seen.head().ops)
    made = []
    for index, (token, score) in enumerate(zip((0, 2, 1), scores, strict=False)):
        born = Propose(index + 1, index, token, -1.0, "target")
        events = [born, Commit([index + 1], [-1.0]), *([score] if score else [])]
        made.append(to_json(seen.feed(Step(index, events))))
    return made


def mark(ops, name):
    return next(op for op in ops if op.get("id") == name and "kind" in op)


def test_the_bars_are_the_laws_and_the_cell_says_how_far_they_are_apart():
    first, second, third = ops_of(EXACT, DRAWN, ONLY)
    assert [mark(first, f"c1-{side}0")["y1"] for side in "mt"] == [0.8, 0.2]
    assert (mark(first, "c1-t1")["y0"], mark(first, "c1-t1")["y1"]) == (0.2, 0.9)
    assert mark(first, "c1-times")["text"] == "4.0×" and mark(first, "c1-times")["state"] == "live"
    assert mark(first, "c1-rather")["text"] == "dog"
    says = "cat: .80 under the mask, .20 for the model among allowed texts: 4.0 times more likely than it "
    assert mark(first, "c1-token")["hover"][0] == f"{says}should be."
    summary = next(op["set"] for op in first if op.get("id") == "heading")
    assert summary["lead"] == "the mask makes this text 4.0 times more likely than it should be"
    assert "exact" in summary["heading"]
    stem = mark(second, "c2-error")
    assert (stem["y0"], stem["y1"]) == (0.5, 0.7)
    assert mark(second, "c2-times")["text"] == "÷1.2" and mark(second, "c2-times")["state"] == "prompt"
    assert "effectively only 2.5" in mark(second, "c2-token")["hover"][1]
    assert mark(third, "c3-token")["fill"] == "dashed"
    summary = next(op["set"] for op in third if op.get("id") == "heading")
    assert "3.3 times more likely" in summary["lead"] and "within a factor of 1.2" in summary["heading"]


def test_what_was_not_measured_is_said():
    ((*marks, summary, say),) = ops_of(None)
    assert say["say"] == "cat: the bias was not measured here." and not summary["set"]["lead"]
    assert len(marks) == 1


@pytest.mark.parametrize(
    "times, text", [(None, "?"), (1.01, "1×"), (12.3, "12×"), (1 / 3, "÷3.0"), (2e4, "10⁴×")]
)
def test_a_factor_fits_into_a_column(times, text):
    assert factor(times) == text


def test_a_factor_reads_as_a_number():
    assert in_words(12_345) == "12,000 times more likely"
    assert in_words(2.5e-8) == "4.0 × 10⁷ times less likely"


def test_the_view_is_there_when_it_is_asked_for():
    greedy = get("greedy")
    assert "bias" not in greedy.views_with({"constraint": "regex"})
    assert "bias" in greedy.views_with({"constraint": "regex", "constraint_bias": True})
