"""The search graph and the queue on real searches of a table model: nothing is lost, nothing moves."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, Score
from decoders.trace.trace import Trace
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.queue import Queue
from visualizers.views.search.search_graph import ROWS, SearchGraph

WORDS = ["A", "<b>", " c", "d"]


def propose(node: int, parent: int, token: int, logprob: float) -> Propose:
    return Propose(node, parent, token, logprob, "target")


def priority(node: int, total: float) -> Score:
    return Rank(node, "priority", total)


def small() -> list[list]:
    """Node 1 waits, 2 is opened and has 3, 3 is merged into 1, 1 is opened and 4 wins."""
    return [
        [propose(1, 0, 1, -0.7), priority(1, -0.7), propose(2, 0, 2, -0.5), priority(2, -0.5)],
        [propose(3, 2, 1, -1.0), priority(3, -1.5), Verdict(3, "merged", into=1, reason="the same")],
        [propose(4, 1, 3, -0.1), priority(4, -0.8), Verdict(4, "finished")],
        [Commit([1, 4], [-0.7, -0.1])],
    ]


def searched(**parameters) -> Trace:
    model = TableModel(lambda text: [0.3, 0.3, 0.2, 0.2], 4)
    lane = Lane("best_first", [0], {"target": model}, parameters, limits=Limits(max_new_tokens=5))
    return lane.run()


def test_states_are_what_became_of_them():
    marks, ops = fold(SearchGraph, small(), [0], WORDS)
    assert {n: marks[f"n{n}"]["state"] for n in (1, 2, 3, 4)} == {
        1: "resampled",
        2: "prompt",
        3: "resampled",
        4: "finished",
    }
    assert marks["n1"]["text"] == "<b>" and marks["n1"]["bold"]
    assert marks["n1"]["note"] == "2 ways" and marks["n2"]["note"] == "1"
    links = [m for m in of_kind(marks, "edge") if m["state"] == "resampled"]
    assert [(m["x0"], m["x1"]) for m in links] == [(2, 1)]
    assert any(op.get("say", "").startswith("Step 1: 0 expanded, 2 in the queue") for op in ops[0])


def test_the_list_at_the_right_is_the_queue():
    marks, ops = fold(SearchGraph, small()[:1], [0], WORDS)
    assert [marks[f"q{i}"]["text"].strip() for i in range(3)] == [
        "next in the queue",
        "−0.50 ␣c",
        "−0.70 <b>",
    ]
    marks, _ = fold(SearchGraph, small(), [0], WORDS)
    assert not any(marks[f"q{i}"]["text"] for i in range(10))


@pytest.mark.parametrize("budget", [1, 20, 200])
def test_all_that_is_not_drawn_is_counted_at_its_parent(budget):
    trace = searched(max_expansions=budget)
    marks, _ = fold(SearchGraph, [s.events for s in trace.steps], [0], WORDS)
    nodes = of_kind(marks, "node")
    places = [(m["x"], m["y"]) for m in nodes]
    assert len(set(places)) == len(places) and all(0 <= y < ROWS for _, y in places)
    children = {}
    for s in trace.steps:
        for event in s.of(Propose):
            children.setdefault(event.parent, []).append(event.node)
    drawn = {m["node"] for m in nodes}
    for mark in nodes:
        left = [n for n in children.get(mark["node"], []) if n not in drawn]
        notes = [mark.get("note"), mark.get("note_more")]
        assert (f"+{len(left)}" in " ".join(filter(None, notes)).split()) == bool(left)
    path = [n for s in trace.steps for c in s.of(Commit) for n in c.nodes]
    assert set(path) <= drawn


def test_every_column_of_the_queue_is_its_head_after_that_step():
    trace = searched(max_expansions=40)
    marks, _ = fold(Queue, [s.events for s in trace.steps], [0], WORDS)
    waiting, opened = {}, set()
    for s in trace.steps:
        for event in s.events:
            if isinstance(event, Propose):
                opened.add(event.parent)
            if isinstance(event, Rank) and event.name == "priority":
                waiting[event.node] = event.total
            if isinstance(event, Verdict) and event.status == "pruned":
                waiting.pop(event.node, None)
            if isinstance(event, Commit):
                opened.update(event.nodes)
        want = sorted((n for n in waiting if n not in opened), key=lambda n: (-waiting[n], n))
        cells = [m for m in of_kind(marks, "cell") if m["x"] == s.index + 1]
        assert [m["node"] for m in sorted(cells, key=lambda m: m["y"])] == want[:5]
        if want:
            assert marks[f"b{s.index + 1}"]["text"] == f"{waiting[want[0]]:.2f}".replace("-", "−")
            assert marks[f"m{s.index + 1}"]["text"] == f"+{max(0, len(want) - 5)}"
    taken = [m for m in of_kind(marks, "cell") if m["state"] == "chosen"]
    assert taken and all(m["node"] in opened for m in taken)


def test_a_state_of_the_queue_says_all_that_it_adds():
    """Two steps of two tokens each, the second after the first; a line's end is left out."""
    words = ["<end>", " a", " b", "\n"]
    events = [
        [Propose(1, 0, 1, -0.1, "target"), Propose(2, 1, 3, -0.1, "target"), Rank(2, "priority", -0.5)],
        [Propose(3, 2, 1, -0.1, "target"), Propose(4, 3, 2, -0.1, "target"), Rank(4, "priority", -0.2)],
    ]
    marks, _ = fold(Queue, events, [0], words)
    assert [m["text"] for m in sorted(of_kind(marks, "cell"), key=lambda m: m["x"])] == ["␣a", "␣a␣b"]


def test_the_queue_stays_in_sight_after_the_search():
    """What is written when nothing waits any more brings no columns: the window would show empty ones."""
    after = [[Propose(5 + i, 4 + i, 1, -0.1, "target"), Commit([5 + i], [-0.1])] for i in range(9)]
    _, ops = fold(Queue, [*small(), *after], [0], WORDS)
    fronts = [op["front"][0] for each in ops for op in each if "front" in op]
    assert max(fronts) == 3  # the last step after which something waited


def test_edges_turn_behind_the_notes_of_their_nodes():
    marks, _ = fold(SearchGraph, small()[:2], [0], WORDS)
    edges = [m for m in of_kind(marks, "edge") if m["state"] != "resampled"]
    assert edges and all(edge["turn"] >= 0.5 and edge["turn"] + edge["bend"] < 1 for edge in edges)
