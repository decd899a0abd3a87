"""The graph view: nodes never move, all that counts is drawn, its words are what the trace's graph says."""

import json
from pathlib import Path

import pytest

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.events import Cell, Commit, Depend, Propose, Verdict
from decoders.trace.trace import Trace, load
from tests.decoders.search.best_first.test_lattice import model as words_model
from tests.helpers import tiny_models
from tests.helpers.view_folding import fold, of_kind
from visualizers.graphs import critical_path
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.graph import Graph

STORED = sorted((Path(__file__).resolve().parents[4] / "assets" / "examples" / "methods").glob("*.json.gz"))
DRAWN = ("cell", "node")


def drawn(trace: Trace) -> tuple[dict[str, dict], list[dict[str, tuple]]]:
    """The marks after all steps, and after each step where every box and square is."""
    view, marks, places = Graph(Header(trace.prompt, trace.vocabulary, trace.shaping, trace.title)), {}, []
    for ops in [to_json(view.head().ops), *(to_json(view.feed(step)) for step in trace.steps)]:
        json.dumps(ops, allow_nan=False)
        for op in ops:
            if "kind" in op:
                assert op["id"] not in marks
                marks[op["id"]] = dict(op)
            elif "set" in op:
                marks[op["id"]] |= op["set"]
        there = {key: m for key, m in marks.items() if m["kind"] in DRAWN and not m.get("gone")}
        places.append({key: (m["x"], m["y"], m.get("w"), m.get("h")) for key, m in there.items()})
    return marks, places


@pytest.fixture(scope="module", params=STORED, ids=lambda path: path.name.split(".")[0])
def grown(request):
    """What `drawn` gives of each stored run."""
    return drawn(load(request.param))


def test_no_node_moves_or_goes_while_the_graph_grows(grown):
    marks, places = grown
    for early, late in zip(places, places[1:], strict=False):
        assert early.items() <= late.items()
    boxes = [(m["x"], m["y"]) for m in of_kind(marks, "cell")]
    assert len(set(boxes)) == len(boxes) > 1, "no two boxes stand in one place"


def test_lines_lead_from_node_to_node(grown):
    marks, _ = grown
    rows = {(m["x"], m["y"]) for m in of_kind(marks, "cell")}
    for edge in of_kind(marks, "edge"):
        assert (round(edge["x0"] - 0.4), edge["y0"]) in rows, "a line begins at a box of the column before"
        node = marks["n" + edge["id"][1:]]
        assert edge["y1"] == node["y"] and edge["x1"] <= node["x"]
        assert edge["x1"] - edge["x0"] < 1, "and stays in the gap between two columns"


def test_strategies_with_trees_lattices_and_tested_waits_have_the_view():
    have = {name for name, strategy in strategies().items() if "graph" in strategy.views}
    assert {"lattice", "best_first", "jacobi", "speculative_tree", "sequoia", "lookahead"} <= have
    assert not have & {"greedy", "sample", "speculative", "prompt_lookup", "beam", "value_mcts"}


def test_of_a_draft_every_node_is_drawn_in_the_state_of_its_verdict():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    trace = Lane("speculative_tree", [40, 41, 42], models, {"widths": [3, 2]}, 0, Limits(12)).run()
    marks, _ = drawn(trace)
    boxes = {m["node"]: m for m in of_kind(marks, "cell")}
    proposed = {e.node for s in trace.steps for e in s.of(Propose)}
    assert set(boxes) == proposed | {2}
    state = {
        "accepted": "accepted",
        "rejected": "rejected",
        "never reached": "unreached",
        "bonus": "bonus",
        "resampled": "resampled",
    }
    for event in (e for s in trace.steps for e in s.of(Verdict)):
        assert boxes[event.node]["state"] == state[event.status]
    path = [n for s in trace.steps for c in s.of(Commit) for n in c.nodes]
    assert {boxes[n]["y"] for n in path} == {0}, "the text goes straight on"
    assert marks["heading"]["lead"].startswith(f"{sum(trace.costs.per_step_drafted)} tokens drafted in ")
    assert f"{trace.costs.accepted} token" in marks["heading"]["heading"]


@pytest.mark.parametrize("seed", range(4))
def test_of_a_lattice_the_ways_the_ends_and_what_all_share_are_those_of_its_graph(seed):
    given = {"ngram": 2, "k_best": 3, "merge": "zip", "max_forwards": 24}
    trace = Lane("lattice", [1], {"target": words_model(seed)}, given, 0, Limits(7)).run()
    graph, (marks, _) = trace.graph("lattice"), drawn(trace)
    merged = {e.node: e.into for s in trace.steps for e in s.of(Verdict) if e.status == "merged"}
    arrows = of_kind(marks, "path")
    assert sorted(int(m["id"][1:].split(".")[0]) for m in arrows) == sorted(merged) != []
    heading = marks["heading"]["lead"] + marks["heading"]["heading"]
    assert heading.startswith(f"{graph.graph['texts']:,} way")
    assert f" to {len(graph.graph['ends'])} end" in heading
    dotted = {m["node"] for m in of_kind(marks, "symbol") if not m.get("gone")}
    assert dotted == set(graph.graph["shared"])
    for node, into in merged.items():
        assert marks[f"n{node}"]["state"] == "pruned"
        end = next(m for m in arrows if m["id"].startswith(f"m{node}."))["points"][-1]
        box = marks[f"n{into}"]
        assert end[0] == box["x"] and abs(end[1] - box["y"]) == pytest.approx(box["h"] / 2)


def test_of_a_search_what_was_never_opened_is_counted_and_not_drawn():
    steps = [
        [Propose(node, 0, node, -0.5, "target") for node in (1, 2, 3)],
        [Propose(4, 2, 1, -0.1, "target"), Propose(5, 2, 2, -0.2, "target")],
        [Verdict(4, "finished"), Verdict(5, "finished"), Verdict(3, "pruned"), Commit([2, 4], [-0.5, -0.1])],
    ]
    marks, ops = fold(Graph, steps, [0], ["A", "b", "c", "d"])
    assert {m["node"] for m in of_kind(marks, "cell")} == {0, 2, 4} and marks["n5"]["kind"] == "node"
    assert marks["n5"]["state"] == marks["n4"]["state"] == "finished" and marks["n2"]["state"] == "chosen"
    assert "2 more offered but never expanded" in marks["heading"]["heading"], "1 and 3"
    assert {m["node"] for m in of_kind(marks, "symbol")} == {2}
    assert not any("kind" in op and op["id"].startswith("n") for op in ops[0])


def waiting(*waits: tuple[int, int]) -> list[list]:
    """Positions 1, 2, 3, 4 are final after iterations 1, 2, 2, 3, 3 stood there since 1; waits as given."""
    cells = [Cell(3, 1, 3, "changed")]
    steps = [
        [*cells, Cell(1, 1, 1, "settled")],
        [Cell(2, 2, 2, "settled"), Cell(3, 2, 3, "settled")],
        [Cell(4, 3, 1, "settled")],
    ]
    final = {1: 0, 2: 1, 3: 1, 4: 2}
    for source, target in waits:
        steps[final[target]].append(Depend(source, target, 1.0, "causal"))
    return steps


def test_of_a_parallel_decoder_rows_are_the_iterations_that_were_needed():
    marks, _ = fold(Graph, waiting((1, 2), (2, 4), (3, 4)), [0], ["A", "b", "c", "d"], dependencies=True)
    boxes = {m["x"]: m for m in of_kind(marks, "cell")}
    assert {x: (m["y"], m["fill"]) for x, m in boxes.items()} == {
        1: (1, "filled"),
        2: (2, "filled"),
        3: (1, "tint"),
        4: (3, "filled"),
    }
    assert {m["id"]: m["strong"] for m in of_kind(marks, "hook")} == {
        "h1-2": True,
        "h2-4": True,
        "h3-4": False,
    }
    assert marks["heading"]["lead"] == "At least 3 of 3 iterations were unavoidable"
    assert boxes[3]["hover"][0] == "d (token 3): final in iteration 2, at least 1 needed"
    assert boxes[3]["hover"][1] == "already guessed in iteration 1; no wait was detected"
    assert [m["text"] for m in of_kind(marks, "row")] == ["1 iteration", "2 iterations", "3 iterations"]


def test_without_waits_one_iteration_would_have_done():
    marks, _ = fold(Graph, waiting(), [0], ["A", "b", "c", "d"], dependencies=True)
    assert marks["heading"]["lead"] == "At least 1 of 3 iterations was unavoidable"
    assert {m["y"] for m in of_kind(marks, "cell")} == {1}


def test_the_longest_chain_of_a_real_lane_is_its_critical_path():
    trace = load(next(path for path in STORED if path.name.startswith("jacobi")))
    marks, _ = drawn(trace)
    path = critical_path(trace.graph("dependencies"))
    strong = [m for m in of_kind(marks, "hook") if m["strong"]]
    assert len(strong) == path.unavoidable - 1 > 3
    lead = f"At least {path.unavoidable} of {path.used} iterations were unavoidable"
    assert marks["heading"]["lead"] == lead


def test_given_tokens_stand_before_the_first_iteration():
    given = [Propose(1, 0, 1, None, "copied"), Propose(2, 1, 2, None, "person"), Commit([1, 2], [None, None])]
    marks, _ = fold(Graph, [given, [Cell(3, 1, 1, "settled")]], [0], ["A", "b", "c"], dependencies=True)
    assert [(m["x"], m["y"], m["state"]) for m in of_kind(marks, "cell")] == [
        (1, 0, "prompt"),
        (2, 0, "forced"),
        (3, 1, "accepted"),
    ]
