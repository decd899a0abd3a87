"""Scores: a column a round, a dot a candidate, lines to what each came from; a scale that only grows."""

import pytest

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.scene.axis_scale import Scale
from visualizers.views.search.scores import HALF, Scores

WORDS = ["A", "<b>", " c", "d"]


def propose(node: int, parent: int, token: int = 1) -> Propose:
    return Propose(node, parent, token, -0.5, "target")


def rounds() -> list[list]:
    """Of 1, 2 and 3 after the prompt 1 and 2 stay; 5 goes on from 1 over 4, and is the text in the end."""
    return [
        [
            *(propose(n, 0) for n in (1, 2, 3)),
            Rank(1, "reward", 0.5, {"aside": 1.0}, rank=1),
            Rank(2, "reward", 0.25, {"aside": -2.0}, rank=2),
            Rank(3, "reward", -3.0, {"aside": 0.5}, rank=3),
            Verdict(3, "pruned"),
        ],
        [
            propose(4, 1),
            propose(5, 4, 2),
            Rank(5, "reward", 9.0, {"aside": 6.0}, rank=1),
            Verdict(2, "pruned"),
        ],
        [Commit([1, 4, 5], [-1, -1, -1])],
    ]


def test_candidates_stand_where_their_score_and_their_vector_say():
    marks, ops = fold(Scores, rounds(), [0], WORDS, num_samples=3)
    dots = {mark["node"]: mark for mark in of_kind(marks, "symbol")}
    assert [(dots[n]["x"], dots[n]["y"]) for n in (1, 2, 3)] == [
        (1 + HALF / 2, 0.5),
        (1 - HALF, 0.25),
        (1 + HALF / 4, -3.0),
    ]
    assert dots[5]["x"] == 2 + HALF, "what lies further out than all of the first round stands at the edge"
    assert [dots[n]["glyph"] for n in (1, 2, 3, 5)] == ["dot", "diamond", "diamond", "dot"]
    assert dots[1]["role"] == dots[5]["role"] == "chosen" and dots[3]["role"] == "soft"
    assert dots[5]["hover"] == ["score 9.00, aside 6.00", "<b>␣c"], "only what is new since 1"
    (line,) = of_kind(marks, "path")
    assert line["points"] == [[dots[1]["x"], 0.5], [dots[5]["x"], 9.0]]
    assert [mark["text"] for mark in of_kind(marks, "label")] == ["0.50", "9.00"]
    assert "best 0.50 of 3 in round 1, 2 stay" in ops[0][-1]["say"]
    assert ops[2][-1] == {"say": "Final now: <b><b>␣c"}
    assert marks["scores"]["y1"] < -3 and marks["scores"]["y0"] > 9


def test_a_round_of_one_is_a_try_against_its_threshold():
    steps = [
        [propose(1, 0), Rank(1, "reward", 0.2, {"threshold": 0.5}), Verdict(1, "rejected")],
        [
            propose(2, 0),
            Rank(2, "reward", 0.6, {"threshold": 0.5}),
            Verdict(2, "accepted"),
            Commit([2], [0]),
        ],
    ]
    marks, ops = fold(Scores, steps, [0], WORDS)
    assert [mark["points"] for mark in of_kind(marks, "path")] == [
        [[x - HALF, 0.5], [x + HALF, 0.5]] for x in (1, 2)
    ]
    assert ops[0][-1] == {"say": "score 0.20, threshold 0.50: try 1 is left out; 0 stayed so far."}
    assert marks["heading"]["lead"] + marks["heading"]["short"] == "score 0.60, threshold 0.50: try 2 stays."
    assert [mark["x"] for mark in of_kind(marks, "symbol")] == [1, 2], "alone in the middle"


def test_a_scale_only_grows_and_only_where_it_must():
    scale = Scale(0.5, floor=0.0)
    assert scale.grow([0.1]) and scale.low == 0.0 and scale.high == pytest.approx(0.4)
    assert not scale.grow([0.3, 0.05])
    low, high = scale.low, scale.high
    assert scale.grow([7.0]) and scale.low == low and scale.high > 7.0 > high
    panel = scale.panel()
    assert panel["y1"] < scale.low and panel["y0"] > scale.high and 3 <= len(panel["ticks"]) <= 6
