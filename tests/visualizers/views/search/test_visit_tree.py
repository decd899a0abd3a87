"""The visit tree of a plan of a table model: every number is of the newest events, and nothing is lost."""

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit
from decoders.trace.scores import Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.search_graph import ROWS
from visualizers.views.search.visit_tree import VisitTree

WORDS = ["<end>", " a", " <b>", " c"]


def planned(rollouts: int):
    model = TableModel(lambda text: [0.2, 0.4, 0.25, 0.15], 4, frozenset({0}), words=WORDS)
    given = {"scorer": "keyword", "keywords": "c a, a a", "rollouts": rollouts}
    return Lane("pg_td", [1], {"target": model}, given, 0, Limits(max_new_tokens=6)).run()


def test_numbers_are_those_of_the_newest_events():
    for rollouts in (1, 20):
        trace = planned(rollouts)
        marks, ops = fold(VisitTree, [s.events for s in trace.steps], [1], WORDS)
        scores = [e for s in trace.steps for e in s.of(Score)]
        visits = {e.node: e for e in scores if e.name == "visits"}
        nodes = of_kind(marks, "node")
        places = [(m["x"], m["y"]) for m in nodes]
        assert len(set(places)) == len(places) and all(0 <= y < ROWS for _, y in places)
        tried = [m for m in nodes if m["node"] in visits and visits[m["node"]].total]
        assert tried
        for mark in tried:
            event = visits[mark["node"]]
            assert mark["note"].startswith(f"×{event.total} {event.parts['value']:.2f}")
        path = {n for s in trace.steps for c in s.of(Commit) for n in c.nodes}
        assert path <= {m["node"] for m in nodes if m["state"] in ("chosen", "finished")}
        best = max(e.total for e in scores if e.name == "text_value")
        assert marks["q1"]["text"].startswith(f"{best:.2f} rollout ")
        assert any(op.get("say", "").endswith(f"the best has {best:.2f}.") for op in ops[-2])


def test_a_search_without_finished_texts_tells_means():
    model = TableModel(lambda text: [0.2, 0.4, 0.25, 0.15], 4, frozenset({0}), words=WORDS)
    given = {"scorer": "keyword", "keywords": "c", "simulations": 12, "width": 3}
    trace = Lane("value_mcts", [1], {"target": model}, given, 0, Limits(max_new_tokens=3)).run()
    marks, ops = fold(VisitTree, [s.events for s in trace.steps], [1], WORDS)
    visits = {e.node: e for s in trace.steps for e in s.of(Rank) if e.name == "visits"}
    tried = [m for m in of_kind(marks, "node") if m["node"] in visits]
    assert tried and all(m["note"].startswith(f"×{visits[m['node']].total} ") for m in tried)
    assert any("their mean" in line for m in tried for line in m["hover"])
    assert any(op.get("say", "").endswith("prefixes tried.") for each in ops for op in each)
