"""A trace as graphs: counts, paths and attributes against the trace itself and against brute force."""

import json
import re
from itertools import pairwise

import networkx as nx
import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.refusal import Refusal
from decoders.testing import random_table
from decoders.trace.events import Cell, Depend, Note, Propose, Step, Verdict
from decoders.trace.scores import Measure, Rank
from decoders.trace.trace import Trace
from tests.decoders.search.best_first.test_lattice import model as words_model
from tests.helpers import tiny_models
from visualizers.graphs import KINDS, critical_path, loops
from visualizers.graphs.export import FORMATS, save
from visualizers.graphs.walk import loop_of

PROMPT = [40, 41, 42, 40, 41]


@pytest.fixture(scope="module")
def models() -> dict:
    return {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}


def decoded(models: dict, strategy: str, prompt=PROMPT, new_tokens: int = 12, **parameters) -> Trace:
    return Lane(strategy, list(prompt), models, parameters, 0, Limits(new_tokens)).run()


@pytest.mark.parametrize("strategy", ["greedy", "beam", "speculative_tree", "best_first", "lookahead"])
def test_the_token_tree_holds_every_node_of_the_trace(models, strategy):
    trace = decoded(models, strategy)
    graph = trace.graph()
    assert nx.is_arborescence(graph) and set(graph) == set(trace.nodes())
    for node, (parent, token) in trace.nodes().items():
        assert graph.nodes[node]["token"] == token
        assert (
            graph.nodes[node]["text"].encode() == trace.vocabulary[token]
            or "\ufffd" in graph.nodes[node]["text"]
        )
        assert list(graph.predecessors(node)) == ([parent] if parent >= 0 else [])
    path = nx.shortest_path(graph, 0, max(n for n in graph if graph.nodes[n]["committed"]))
    assert [graph.nodes[n]["depth"] for n in path] == list(
        range(1 - len(PROMPT), len(path) - len(PROMPT) + 1)
    )
    text = [n for n in graph if graph.nodes[n]["committed"]]
    assert [
        graph.nodes[n]["token"] for n in sorted(text, key=lambda n: graph.nodes[n]["depth"])
    ] == trace.output()
    last = {e.node: e.status for s in trace.steps for e in s.of(Verdict)}
    assert all(graph.nodes[n]["status"] == status for n, status in last.items())


def test_a_graph_of_the_first_steps_knows_nothing_of_later_ones(models):
    trace = decoded(models, "speculative")
    early = trace.graph("tokens", 2)
    assert set(early) == set(trace.prompt and range(len(PROMPT))) | {
        e.node for s in trace.steps[:2] for e in s.of(Propose)
    }
    assert {known["step"] for _, known in early.nodes(data=True)} == {-1, 0, 1}


def test_drafts_have_their_round_and_their_test(models):
    trace = decoded(models, "speculative", num_assistant_tokens=3)
    graph = trace.graph("drafts")
    drafted = {n: known for n, known in graph.nodes(data=True) if "round" in known}
    assert sum(trace.costs.per_step_drafted) == len(drafted)
    accepted = [known for known in drafted.values() if known["status"] == "accepted"]
    assert len(accepted) == trace.costs.accepted and all("p" in known for known in accepted)
    assert {known["round"] for known in drafted.values()} == set(range(len(trace.costs.per_step_drafted)))


def test_what_was_scored_in_the_prompt_is_no_beam():
    """As the clauses of a prompt are that a plan chooses from."""
    prompt, candidate = (
        Step(0, [Rank(0, "plan", 1.0, units=[1])]),
        [Propose(2, 1, 5, None, "target"), Measure(2, "sum", -1.0)],
    )
    trace = Trace("edu_plans", "Plans", {}, 0, {}, [3, 4], dict.fromkeys(range(6), b"x"))
    for step in (prompt, Step(1, candidate)):
        trace.append(step)
    assert list(trace.graph("beams").edges) == [(1, 2)]


def test_beams_are_what_was_ranked(models):
    graph = decoded(models, "beam", num_beams=3).graph("beams")
    leaves = [n for n in graph if not graph.out_degree(n)]
    assert nx.is_arborescence(graph) and all("score" in graph.nodes[n] for n in leaves)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("merge", ["zip", "rcb", "never"])
def test_a_lattice_counts_the_texts_that_its_strategy_counted(seed, merge):
    given = {"ngram": 2, "k_best": 3, "merge": merge, "max_forwards": 24}
    trace = decoded({"target": words_model(seed)}, "lattice", [1], 7, **given)
    graph = trace.graph("lattice")
    told = [e.text for s in trace.steps for e in s.of(Note) if " paths to " in e.text][-1]
    assert graph.graph["texts"] == int(re.search(r"([\d,]+) paths", told)[1].replace(",", ""))
    root, ends = graph.graph["root"], graph.graph["ends"]
    paths = [path for end in ends for path in nx.all_simple_paths(graph, root, end)]
    assert len(paths) == graph.graph["texts"]
    everywhere = set.intersection(*(set(path) for path in paths)) - {root} if paths else set()
    assert set(graph.graph["shared"]) == everywhere
    assert all(graph.nodes[a]["layer"] < graph.nodes[b]["layer"] for a, b in graph.edges)
    merged = sum(len(known["stands_for"]) - 1 for _, known in graph.nodes(data=True))
    assert merged == sum(e.status == "merged" for s in trace.steps for e in s.of(Verdict))


def test_a_walk_has_the_text_and_its_loops():
    model = TableModel(
        lambda past: [float(t == (past[-1] + 1) % 3) for t in range(3)], 3, words=["a", "b", "c"]
    )
    trace = decoded({"target": model}, "greedy", [0], 8)
    graph = trace.graph("walk")
    text = [0, *trace.output()]
    assert {node: known["visits"] for node, known in graph.nodes(data=True)} == {
        t: text.count(t) for t in text
    }
    assert {e: known["times"] for *e, known in graph.edges(data=True) for e in [tuple(e)]} == {
        pair: list(pairwise(text)).count(pair) for pair in pairwise(text)
    }
    assert [(sorted(cycle), times) for cycle, times in loops(graph)] == [([0, 1, 2], 2)]


def test_a_text_that_goes_everywhere_has_more_loops_than_are_listed():
    graph = nx.complete_graph(14, nx.DiGraph)
    nx.set_edge_attributes(graph, 2, "times")
    assert len(loops(graph, max_loops=500)) == 500
    assert loop_of(graph, 3, 4) == ([4, 3], 2)
    graph.edges[4, 3]["times"] = 1
    cycle, times = loop_of(graph, 3, 4)
    assert (len(cycle), cycle[0], cycle[-1], times) == (3, 4, 3, 2)


def test_what_was_merged_in_circles_is_no_lattice():
    trace = Trace("lattice", "Lattice", {}, 0, {}, [0], {0: b"a", 1: b"b"})
    trace.append(
        Step(
            0,
            [
                Propose(1, 0, 1, -0.1, "target"),
                Propose(2, 0, 1, -0.2, "target"),
                Verdict(1, "merged", into=2),
                Verdict(2, "merged", into=1),
            ],
        )
    )
    with pytest.raises(Refusal, match="contains cycles"):
        trace.graph("lattice")


def test_attention_points_from_what_was_looked_at(models):
    trace = decoded(models, "greedy")
    graph = trace.graph("attention")
    told = {
        (e.source, e.target): e.weight for s in trace.steps for e in s.of(Depend) if e.kind == "attention"
    }
    assert told and {(a, b): known["weight"] for a, b, known in graph.edges(data=True)} == told
    assert nx.is_directed_acyclic_graph(graph)


def test_the_critical_path_is_the_longest_chain_of_waiting():
    """1 is free, 2 waits for 1, 3 for nobody, 4 for 2 and 3; final after iterations 1, 2, 2, 3."""
    cells = {1: 1, 2: 2, 3: 2, 4: 3}
    steps = [
        [Cell(place, iteration, 0, "settled") for place, final in cells.items() if final == iteration]
        for iteration in (1, 2, 3)
    ]
    steps[1].append(Depend(1, 2, 1.0, "causal"))
    steps[2] += [Depend(2, 4, 1.0, "causal"), Depend(3, 4, 1.0, "causal")]
    trace = Trace("jacobi", "Jacobi", {}, 0, {}, [0], {0: b"a"})
    for index, events in enumerate(steps):
        trace.append(Step(index, events))
    path = critical_path(trace.graph("dependencies"))
    assert (path.positions, path.unavoidable, path.used) == ([1, 2, 4], 3, 3)


@pytest.mark.parametrize("seed", range(4))
def test_no_parallel_decoder_is_faster_than_its_critical_path(seed):
    model = TableModel(random_table(seed, 6, 3.0), 6)
    trace = decoded({"target": model}, "jacobi", [0, 1], 16, block_size=8)
    path = critical_path(trace.graph("dependencies"))
    assert 1 <= path.unavoidable <= path.used <= 16
    graph = trace.graph("dependencies")
    assert len(graph) == 16 and all(
        known["right_from"] <= known["iteration"] for _, known in graph.nodes(data=True)
    )
    assert max(known["min_iterations"] for _, known in graph.nodes(data=True)) == path.unavoidable
    assert all(graph.nodes[a]["min_iterations"] < graph.nodes[b]["min_iterations"] for a, b in graph.edges)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", ["tokens", "drafts", "walk", "attention", "lattice"])
def test_files_are_read_again_as_the_same_graph(models, tmp_path, ending, kind):
    graph = decoded(models, "speculative").graph(kind)
    path = tmp_path / f"graph{ending}"
    save(graph, path)
    if ending == ".dot":
        text = path.read_text("utf-8")
        assert text.count(" -> ") >= graph.number_of_edges() and text.count("label=") == len(graph)
        return
    again = {
        ".graphml": lambda: nx.read_graphml(path, node_type=int),
        ".gexf": lambda: nx.read_gexf(path, node_type=int),
        ".json": lambda: nx.node_link_graph(json.loads(path.read_text("utf-8")), edges="links"),
    }[ending]()
    assert set(again) == set(graph) and set(again.edges()) == set(graph.edges())
    for node, known in graph.nodes(data=True):
        if known["text"].isprintable():
            assert again.nodes[node]["text"] == known["text"]


def test_what_there_is_not_is_said(models, tmp_path):
    trace = decoded(models, "greedy")
    with pytest.raises(ValueError, match="no graph of kind 'wings'; choose one of tokens"):
        trace.graph("wings")
    for kind in ("dependencies", "beams"):
        with pytest.raises(ValueError, match=f"nothing for a graph of kind '{kind}'"):
            trace.graph(kind)
    with pytest.raises(ValueError, match=r"saved as .graphml.* ends in none of them"):
        save(trace.graph(), tmp_path / "graph.png")
    assert set(KINDS) >= {
        "tokens",
        "drafts",
        "beams",
        "search",
        "lattice",
        "walk",
        "attention",
        "dependencies",
        "notes",
    }
