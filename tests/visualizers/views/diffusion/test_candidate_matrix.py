"""Candidates: their texts, the table of word error rates, and the chosen one."""

from decoders.trace.events import Commit, Propose
from decoders.trace.scores import Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.diffusion.candidate_matrix import CandidateMatrix

WORDS = [" a", " b", " c"]


def scored(node: int, total: float, rank: int, *rates: float) -> Score:
    return Rank(
        node, "word_error_rate", total, {f"against {j + 1}": r for j, r in enumerate(rates)}, rank=rank
    )


STEP = [
    Propose(1, 0, 0, -1.0, "flow", 0),
    Propose(2, 0, 1, -1.0, "flow", 1),
    Propose(3, 2, 2, -1.0, "flow", 1),
    scored(3, 0.25, 1, 0.5, 0.0),
    scored(1, 0.5, 2, 0.0, 1.0),
    Commit([2, 3], [-1.0, -1.0]),
]


def test_texts_rates_and_the_chosen_one():
    marks, ops = fold(CandidateMatrix, [STEP], [5], WORDS, num_candidates=2)
    assert (marks["t0"]["text"], marks["t1"]["text"]) == ("a", "b c")
    assert [marks[key]["state"] for key in ("n0", "n1")] == ["prompt", "chosen"]
    table = [[marks[f"w{i}.{j}"]["text"] for j in range(2)] for i in range(2)]
    assert table == [["0", "1.00"], [".50", "0"]]
    assert [marks[f"a{i}"]["text"] for i in range(2)] == [".50", ".25"]
    assert "candidate 2 against 1: word error rate .50" in marks["w1.0"]["hover"]
    assert [mark["text"] for mark in of_kind(marks, "label")][:4] == ["", "mean", "1", "2"]
    assert "Candidate 2 is chosen" in ops[0][-1]["say"]


def test_one_candidate_is_no_choice():
    marks, _ = fold(CandidateMatrix, [[Propose(1, 0, 0, -1.0, "flow"), Commit([1], [-1.0])]], [5], WORDS)
    assert "nothing to choose" in marks["heading"]["heading"] and not of_kind(marks, "cell")
