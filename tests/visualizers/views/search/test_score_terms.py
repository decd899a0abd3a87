"""Score terms: bars for likelihood and for what was added to it, and dots for the candidates that live."""

import pytest

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.score_terms import ScoreTerms

WORDS = ["A", "<b>", " c"]


def scored(node: int, total: float, likely: float, rank: int | None) -> list:
    """A candidate is scored, and scored again with its rank if it lives."""
    parts = {"sum_logprob": likely, "diversity": total - likely}
    ranks = [None] if rank is None else [None, rank]
    return [Rank(node, "augmented_sum", total, parts, rank=r) for r in ranks]


def steps() -> list[list]:
    return [
        [
            *(Propose(n, 0, 1, -1, "target") for n in (1, 2)),
            *scored(1, -2.0, -0.5, 2),
            *scored(2, -1.0, -1.0, 1),
        ],
        [
            Propose(3, 2, 2, -1, "target"),
            *scored(3, -3.0, -2.0, None),
            Verdict(1, "pruned"),
            Verdict(3, "finished"),
            Commit([2], [-1.0]),
        ],
    ]


def test_the_bars_of_a_candidate_end_at_its_likelihood_and_at_its_sum():
    marks, ops = fold(ScoreTerms, steps(), [0], WORDS, num_beams=1)
    assert [(marks[f"p{n}"]["y0"], marks[f"p{n}"]["y1"]) for n in (1, 2, 3)] == [(-0.5, 0), (-1, 0), (-2, 0)]
    assert [(marks[f"a{n}"]["y0"], marks[f"a{n}"]["y1"]) for n in (1, 2, 3)] == [
        (-2, -0.5),
        (-1, -1),
        (-3, -2),
    ]
    assert marks["p2"]["x"] < marks["p1"]["x"] < 1.5 < marks["p3"]["x"], "the best sum first"
    assert marks["p1"]["hover"] == ["sum −2.00: log p −0.50, diversity −1.50", "<b>"]
    assert marks["heading"]["lead"] + marks["heading"]["heading"] == (
        "step 2, the best: sum −3.00: log p −2.00, diversity −1.00."
    )
    assert marks["sums"]["y1"] < -3 and marks["sums"]["y0"] >= 0
    assert [(mark["node"], mark["role"]) for mark in of_kind(marks, "symbol")] == [
        (2, "chosen"),
        (3, "finished"),
    ]


@pytest.mark.parametrize(("combine", "end"), [("weighed", -0.05), ("product", -0.5)])
def test_likelihood_counts_as_much_as_its_weight(combine, end):
    given = {"num_beams": 1, "combine": combine, "likelihood_weight": 0.1}
    marks, _ = fold(ScoreTerms, steps(), [0], WORDS, **given)
    assert marks["p1"]["y0"] == end == marks["a1"]["y1"] and marks["a1"]["y0"] == -2


def test_what_waits_has_its_way_and_what_is_still_to_come():
    waits = [Propose(1, 0, 1, -1, "target"), Rank(1, "priority", -0.75, {"g": 0.25, "h": 0.5})]
    marks, _ = fold(ScoreTerms, [waits], [0], WORDS, num_samples=2)
    assert (marks["p1"]["y0"], marks["a1"]["y0"], marks["a1"]["y1"]) == (-0.25, -0.75, -0.25)
    assert marks["d1"]["role"] == "live" and marks["p1"]["hover"][0] == "f 0.75: g 0.25, h 0.50"
    marks, _ = fold(ScoreTerms, [waits, [Propose(2, 1, 2, -1, "target")]], [0], WORDS, num_samples=2)
    assert marks["d1"]["glyph"] == "diamond"
