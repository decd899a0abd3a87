"""The entropy trace draws the numbers of the trace: checked against entropies worked out by hand."""

import math

import pytest

from decoders.trace.events import Commit, Distribution, Propose
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.any_lane.entropy import Entropy, share_height

WORDS = ["Once", " upon", " a", " big", "<b>", " dog", "."]
HALF, QUARTER, EIGHTH = math.log(0.5), math.log(0.25), math.log(0.125)


def offer(node: int, probabilities: list[float], first: int = 2, rest: float = 0.0) -> Distribution:
    """A distribution over tokens `first`, `first` + 1, ...; entropy in nats over the listed ones."""
    top = [[first + i, math.log(p)] for i, p in enumerate(probabilities)]
    return Distribution(node, "target", top, rest, -sum(p * math.log(p) for p in probabilities))


def greedy_step(node: int, probabilities: list[float], token: int = 2) -> list:
    logprob = math.log(probabilities[token - 2])
    return [
        offer(node - 1, probabilities),
        Propose(node, node - 1, token, logprob, "target"),
        Commit([node], [logprob]),
    ]


def test_entropy_and_surprisal_are_in_bits():
    # H(1/2, 1/4, 1/8, 1/8) = 1/2 * 1 + 1/4 * 2 + 2 * 1/8 * 3 = 1.75 bits; the chosen one (1/8) has 3 bits.
    marks, ops = fold(Entropy, [greedy_step(2, [0.5, 0.25, 0.125, 0.125], token=5)], [0, 1], WORDS)
    assert marks["c1-step"]["y"] == pytest.approx(1.75) and marks["c1-step"]["x"] == 1
    assert marks["c1-chosen"]["y"] == pytest.approx(3.0)
    assert (marks["c1-stem"]["y0"], marks["c1-stem"]["y1"]) == (pytest.approx(3.0), pytest.approx(1.75))
    assert marks["c1-chosen"]["glyph"] == "diamond"
    assert marks["c1-token"]["fill"] == "outline" and marks["c1-token"]["text"] == "␣dog"
    assert "a surprise" in marks["c1-chosen"]["hover"][0]
    assert ops[0][-1] == {"say": "␣dog: p .12, 3.00 bits; entropy 1.75 bits, a surprise; rank 4."}


def test_the_top_token_is_a_dot_and_the_bars_stack_to_the_shown_mass():
    marks, _ = fold(Entropy, [greedy_step(2, [0.5, 0.25, 0.125, 0.125])], [0, 1], WORDS)
    assert marks["c1-chosen"]["glyph"] == "dot" and marks["c1-token"]["fill"] == "tint"
    bars = sorted(of_kind(marks, "bar"), key=lambda bar: bar["rank"])
    assert [(bar["y0"], bar["y1"]) for bar in bars] == [(0, 0.5), (0.5, 0.75), (0.75, 0.875), (0.875, 1)]
    assert marks["c1-share"]["y"] == pytest.approx(0.25)


def test_no_more_than_five_pieces_and_a_choice_outside_them_stands_in_the_white():
    top = [0.2, 0.15, 0.1, 0.1, 0.05, 0.05]
    event = Distribution(1, "target", [[t, math.log(p)] for t, p in enumerate(top, 10)], 0.35, 2.5)
    marks, _ = fold(Entropy, [[event, Propose(2, 1, 3, -4.0, "target"), Commit([2], [-4.0])]], [0, 1], WORDS)
    assert len(of_kind(marks, "bar")) == 5
    assert marks["c1-share"]["y"] == pytest.approx((0.6 + 1) / 2)
    assert "not among the 5 most likely" in marks["c1-chosen"]["hover"][0]


def test_a_fork_is_amber_and_names_the_two_that_were_not_taken():
    # Six equal tokens: log2(6) = 2.58 bits and a second token of 1/6 > .15.
    marks, _ = fold(Entropy, [greedy_step(2, [1 / 6] * 6, token=3)], [0, 1], WORDS + ["!"])
    assert marks["c1-step"]["y"] == pytest.approx(2.585, abs=1e-3)
    assert {band["panel"] for band in of_kind(marks, "band")} == {"bits", "mass", "tokens"}
    assert marks["c1-fork"]["glyph"] == "triangle"
    assert [marks[f"c1-other{line}"]["text"].strip() for line in (0, 1)] == [
        "␣a\u00a0\u00a0.17",
        "<b>\u00a0.17",
    ]
    assert marks["c1-other0"]["y"] > marks["c1-other1"]["y"] > marks["c1-fork"]["y"], "the scale runs upwards"


def test_high_entropy_without_a_strong_second_token_is_no_fork():
    marks, _ = fold(Entropy, [greedy_step(2, [0.5] + [0.05] * 10)], [0, 1], WORDS + ["x"] * 9)
    assert marks["c1-step"]["y"] > 2.2 and not of_kind(marks, "band")


def test_thresholds_are_parameters():
    marks, _ = fold(
        Entropy, [greedy_step(2, [0.5, 0.25, 0.25])], [0, 1], WORDS, fork_entropy=1.0, fork_second=0.2
    )
    assert len(of_kind(marks, "band")) == 3


def test_the_scale_grows_in_whole_steps_of_two_and_never_shrinks():
    def rare(node, logprob):
        return [
            offer(node - 1, [0.5, 0.5]),
            Propose(node, node - 1, 6, logprob, "target"),
            Commit([node], [logprob]),
        ]

    bits = math.log(2)
    marks, ops = fold(
        Entropy,
        [rare(2, -5.9 * bits), rare(3, -6.1 * bits), rare(4, -1 * bits), rare(5, -11 * bits)],
        [0, 1],
        WORDS,
    )
    grown = [[op["set"]["y0"] for op in step if op.get("id") == "bits" and "set" in op] for step in ops]
    assert grown == [[], [8], [], [12]]
    assert marks["bits"]["ticks"][-1] == [12, "12"]


def test_a_distribution_may_come_many_steps_before_the_commit_and_a_commit_may_bring_several_tokens():
    drafted = [
        offer(1, [0.5, 0.5]),
        Propose(2, 1, 2, HALF, "draft"),
        Propose(3, 2, 3, HALF, "draft"),
        Propose(9, 2, 4, HALF, "draft"),
        offer(2, [0.25, 0.75]),
    ]
    marks, _ = fold(Entropy, [drafted, [], [Commit([2, 3], [HALF, math.log(0.75)])]], [0, 1], WORDS)
    assert marks["c1-step"]["y"] == pytest.approx(1.0)
    assert marks["c2-step"]["y"] == pytest.approx(-0.25 * math.log2(0.25) - 0.75 * math.log2(0.75), abs=1e-4)
    assert "c3-step" not in marks


def test_a_token_without_a_recorded_distribution_has_its_dot_and_no_invented_entropy():
    marks, _ = fold(Entropy, [[Propose(2, 1, 2, HALF, "guess"), Commit([2], [HALF])]], [0, 1], WORDS)
    assert marks["c1-chosen"]["y"] == pytest.approx(1.0)
    assert not of_kind(marks, "step") and not of_kind(marks, "bar")


def test_processed_and_draft_distributions_are_not_mistaken_for_the_targets():
    other = Distribution(1, "processed", [[2, 0.0]], 0.0, 0.0)
    marks, _ = fold(
        Entropy,
        [[offer(1, [0.5, 0.5]), other, Propose(2, 1, 2, HALF, "target"), Commit([2], [HALF])]],
        [0, 1],
        WORDS,
    )
    assert marks["c1-step"]["y"] == pytest.approx(1.0)


def test_share_height_is_the_middle_of_the_piece():
    assert share_height(3, [[2, HALF], [3, QUARTER], [4, EIGHTH]]) == pytest.approx(0.625)
