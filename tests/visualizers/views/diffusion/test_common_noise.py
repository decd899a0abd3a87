"""Common noise: two bars per judged position, with the winner of each; none for what was not judged."""

from math import log

import pytest

from decoders.trace.events import Commit, Distribution, Propose, Verdict
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.common_noise import HIGH, SMALLEST, CommonNoise

WORDS = ["Once", " upon", " a", " the", " cat"]


def offer(node: int, view: str, *pairs: tuple[int, float]) -> Distribution:
    return Distribution(node, view, [[token, log(p)] for token, p in pairs], 0.0, 1.0)


def a_round() -> list:
    """The first token wins in both, the second in the draft alone, the third is not judged."""
    drafted = [Propose(2 + i, 1 + i, token, -0.5, "draft") for i, token in enumerate((1, 2, 4))]
    offers = [
        offer(1, "processed", (1, 0.75), (3, 0.25)),
        offer(1, "combined", (1, 0.5), (3, 0.5)),
        offer(2, "processed", (2, 0.6), (4, 0.4)),
        offer(2, "combined", (4, 0.9), (2, 0.1)),
    ]
    rival = Propose(5, 2, 4, log(0.9), "mixture", 1)
    verdicts = [
        Verdict(2, "accepted", 0.5, 0.75),
        Verdict(3, "rejected", 0.1, 0.6, reason="The mixture's winner is another."),
        Verdict(5, "pruned"),
        Verdict(4, "never reached"),
    ]
    return [*drafted, *offers, rival, *verdicts, Commit([2], [-0.5])]


def test_the_winner_stands_out_in_both_bars():
    marks, ops = fold(CommonNoise, [a_round()], [0, 1], WORDS)
    won = {k: m for k, m in marks.items() if m["kind"] == "cell" and "wins" in m["hover"][0]}
    assert {(k[0], round(m["x"], 1)): m["state"] for k, m in won.items()} == {
        ("D", 0.8): "accepted",
        ("T", 1.2): "accepted",
        ("D", 1.8): "rejected",
        ("T", 2.2): "resampled",
    }
    assert won["T1-2.2-0"]["hover"] == ["␣cat wins under the mixture", "pT .90"]
    assert won["D1-0.8-0"]["h"] == pytest.approx(0.75 * HIGH)
    assert ops[0][-1]["say"] == "Round 1: 1 of 3 drafted tokens accepted, 1 kept."


def test_pieces_of_a_bar_stand_on_each_other():
    marks, _ = fold(CommonNoise, [a_round()], [0, 1], WORDS)
    (other,) = [m for m in of_kind(marks, "bar") if m["x"] == pytest.approx(0.8)]
    box = marks["D1-0.8-0"]
    assert other["y1"] == pytest.approx(box["y"] - box["h"] / 2)
    assert other["y1"] - other["y0"] == pytest.approx(0.25 * HIGH)


def test_what_was_not_judged_has_no_bars():
    marks, _ = fold(CommonNoise, [a_round()], [0, 1], WORDS)
    assert marks["n4"]["state"] == "unreached"
    assert not [m for m in of_kind(marks, "bar") if m["x"] > 2.5]


def test_a_winner_that_is_not_among_the_likeliest_still_has_a_piece():
    events = a_round()
    events[3] = offer(1, "processed", (3, 0.9), (4, 0.05))
    marks, _ = fold(CommonNoise, [events], [0, 1], WORDS)
    assert marks["D1-0.8-2"]["h"] == SMALLEST and marks["D1-0.8-2"]["hover"][1] == "pD less than those shown"


def test_other_steps_draw_nothing():
    _, ops = fold(CommonNoise, [[Propose(2, 1, 1, -0.5, "target"), Commit([2], [-0.5])]], [0, 1], WORDS)
    assert ops == [[]]
