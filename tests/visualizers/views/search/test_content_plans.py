"""The plans view: units, the search over plans, and the summaries with their scores."""

from decoders.trace.events import Commit, Propose
from decoders.trace.scores import Measure, Rank, Span
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.content_plans import ContentPlans

WORDS = ["Tom", " sings", ".", " Mia", " sleeps", " song", " night"]
PROMPT = [0, 1, 2, 3, 4, 2]


def plan(level: str, total: float, rank: int, whole: bool = False) -> Rank:
    units = [int(unit) for unit in level.split()]
    parts = {"whole": float(whole)}
    return Rank(1 if units[-1] == 1 else 4, "plan", total, parts, level, rank=rank, units=units)


STEPS = [
    [
        Span(1, "unit", 0.7, number=1, first=0, last=1),
        Span(4, "unit", 0.3, number=2, first=3, last=4),
        plan("1", -0.5, 1),
        plan("2", -1.0, 2),
    ],
    [plan("1", -0.9, 1, whole=True), plan("1 2", -1.2, 2)],
    [plan("1", -0.9, 1, whole=True), plan("1 2", -1.2, 2, whole=True), plan("1 2 2", -3.0, 3)],
    [Propose(6, 5, 5, -0.1, "target"), Propose(7, 6, 2, -0.1, "target"), Propose(8, 5, 6, -0.2, "target")],
    [
        Measure(7, "adherence", 1.0, level="1"),
        Rank(7, "reranker", -0.4, level="1", rank=1),
        Measure(8, "adherence", 0.5, level="1 2"),
        Rank(8, "reranker", -0.6, level="1 2", rank=2),
        Commit([6, 7], [-0.1, -0.1]),
    ],
]


def test_a_plan_is_a_path_through_the_rows_of_its_units():
    marks, _ = fold(ContentPlans, STEPS, PROMPT, WORDS)
    rows = {mark["text"]: mark["right"] for mark in of_kind(marks, "row")}
    assert rows["1  Tom sings"] == "70 %" and rows["2  Mia sleeps"] == "30 %"
    nodes = {mark["id"]: (mark["x"], round(mark["y"])) for mark in of_kind(marks, "node")}
    assert nodes == {"p1": (1, 0), "p2": (1, 1), "p1 2": (2, 1), "p1 2 2": (3, 1)}
    edge, _ = of_kind(marks, "edge")
    assert (edge["x0"], edge["x1"]) == (1, 2)


def test_states_follow_from_who_goes_on_and_who_wins():
    marks, ops = fold(ContentPlans, STEPS[:2], PROMPT, WORDS)
    assert [marks[name]["state"] for name in ("p1", "p2", "p1 2")] == ["finished", "pruned", "live"]
    assert marks["p1"]["note"] == "−0.90" and ops[1][-1]["say"].startswith("Step 2: 1 whole plan")
    marks, _ = fold(ContentPlans, STEPS, PROMPT, WORDS)
    states = [marks[name]["state"] for name in ("p1", "p2", "p1 2", "p1 2 2")]
    assert states == ["chosen", "pruned", "finished", "pruned"]


def test_summaries_stand_below_with_their_scores_the_best_first():
    marks, ops = fold(ContentPlans, STEPS, PROMPT, WORDS)
    cells = {cell["node"]: cell for cell in of_kind(marks, "cell")}
    assert [cells[node]["text"] for node in (6, 7, 8)] == ["␣song", ".", "␣night"]
    assert cells[6]["fill"] == "filled" and cells[8]["fill"] == "tint" and cells[8]["y"] > cells[6]["y"]
    assert marks["s1"]["right"] == "−0.40  F1 1.00" and marks["s1"]["bold"] == "output"
    assert ops[3][-1]["say"] == "Step 4: 2 plans: 3 tokens written under them."
    assert ops[4][-1]["say"].startswith("Step 5: plan 1 is output")
