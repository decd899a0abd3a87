"""Segments: rows of tokens with their scores; colours say what became of them; two kinds of real runs."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.segments import Segments, number

WORDS = ["A", "<b>", " c", "d"]


def propose(node: int, parent: int, token: int = 1, slot: int = 0) -> Propose:
    return Propose(node, parent, token, -0.5, "target", slot)


def reward(node: int, total: float, tau: float) -> Score:
    return Rank(node, "reward", total, {"threshold": tau})


def redrawn() -> list[list]:
    """Two tokens are rejected, two others accepted in their place; then a piece of one."""
    return [
        [propose(1, 0)],
        [propose(2, 1), reward(2, 0.2, 0.5), *(Verdict(n, "rejected") for n in (1, 2))],
        [propose(3, 0, slot=1)],
        [
            propose(4, 3),
            reward(4, 0.5, 0.5),
            *(Verdict(n, "accepted") for n in (3, 4)),
            Commit([3, 4], [0, 0]),
        ],
        [propose(5, 4), reward(5, 1.0, 0.6), Verdict(5, "accepted"), Commit([5], [0])],
    ]


def test_a_piece_that_is_drawn_again_stands_in_another_row():
    marks, _ = fold(Segments, redrawn(), [0], WORDS)
    cells = {m["node"]: m for m in of_kind(marks, "cell")}
    assert [(cells[n]["x"], cells[n]["y"]) for n in (1, 2, 3, 4)] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    assert {n: cells[n]["state"] for n in cells} == {
        1: "rejected",
        2: "rejected",
        3: "accepted",
        4: "accepted",
        5: "accepted",
    }
    assert cells[1]["fill"] == "outline" and cells[4]["fill"] == "filled" and cells[1]["text"] == "<b>"
    assert (marks["v2"]["text"], marks["v4"]["text"], marks["v5"]["text"]) == (".2<.5", ".5≥.5", "1≥.6")
    assert "threshold 0.500" in cells[3]["hover"][0]


def test_scores_have_a_column_of_their_own():
    """The next piece in a row begins after the score of the one before, or in another row."""
    marks, _ = fold(Segments, redrawn(), [0], WORDS)
    cells = {m["node"]: m for m in of_kind(marks, "cell")}
    assert (cells[5]["x"], cells[5]["y"]) == (3, 2)
    assert marks["w5"]["points"][0][0] == 2.5


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("a_star", {"scorer": "keyword", "keywords": "c", "num_samples": 3, "max_calls": 30}),
        ("cards", {"scorer": "keyword", "keywords": "c", "max_segment": 2, "min_segment": 1}),
    ],
)
def test_real_runs_no_two_cells_share_a_place_and_the_text_is_filled(strategy, parameters):
    words = ["", "a\n", "b\n", "c\n"]
    model = TableModel(lambda text: [0.1, 0.5, 0.3, 0.1], 4, frozenset({0}), words=words)
    lane = Lane(strategy, [1], {"target": model}, parameters, 1, Limits(max_new_tokens=8))
    trace = lane.run()
    marks, _ = fold(Segments, [step.events for step in trace.steps], [1], words)
    cells = of_kind(marks, "cell")
    assert len({(m["x"], m["y"]) for m in cells}) == len(cells)
    filled = sorted((m for m in cells if m["fill"] == "filled"), key=lambda m: m["x"])
    tokens = {node: token for node, (_, token) in trace.nodes().items()}
    assert [tokens[m["node"]] for m in filled] == trace.output()
    behind = {(round(m["x"] + 0.46), m["y"]) for m in of_kind(marks, "label")}
    assert behind and not behind & {(m["x"], m["y"]) for m in cells}


def test_numbers_are_short():
    assert [number(v) for v in (0.5, 1.0, 0.0, 0.333, 1.25)] == [".5", "1", "0", ".33", "1.25"]
