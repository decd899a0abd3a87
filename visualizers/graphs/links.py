"""Dependencies: attention between tokens, and which positions of a parallel decoder waited for which."""

from dataclasses import dataclass

import networkx as nx

from decoders.trace.events import FINAL_STATES, Cell, Depend, Step
from decoders.trace.trace import Trace
from visualizers.graphs.token_tree import token_tree
from visualizers.scene.view import Header


def attention(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """An edge from each token that was attended to, to the token that was predicted from it, with `weight`
    (mean over heads and layers; only the strongest were recorded). Nodes as in the token tree, those of the
    text only.
    """
    tree = token_tree(trace, steps)
    text = [n for n, known in tree.nodes(data=True) if known["committed"] or known["step"] < 0]
    graph = nx.DiGraph(**tree.graph | {"kind": "attention"})
    graph.add_nodes_from((node, tree.nodes[node]) for node in text)
    for event in (e for s in trace.steps[:steps] for e in s.of(Depend) if e.kind == "attention"):
        if event.source in graph and event.target in graph:
            graph.add_edge(event.source, event.target, weight=event.weight)
    return graph


def dependencies(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """Positions of a parallel decoder (1: the first new token); an edge from each position to one that waited
    for it. Nodes have `token`, `text`, `iteration` (in which it became final), `least` (iterations that it
    needed at least: the longest chain of waits that ends here) and, where a guess was right before,
    `right_from` (the iteration since which the final token stood there).
    """
    waits = Waits(trace)
    waits.graph.graph.update(strategy=trace.strategy, title=trace.title, seed=trace.seed)
    for step in trace.steps[:steps]:
        waits.read(step)
    return waits.graph


class Waits:
    """The graph of `dependencies`, step by step. What a position waited for is known once it is final."""

    def __init__(self, trace: Trace | Header):
        self.graph = nx.DiGraph(kind="dependencies")
        self.vocabulary, self.start = trace.vocabulary, len(trace.prompt) - 1
        self.stood: dict[int, tuple[int, int]] = {}  # position -> its token, and since which iteration

    def read(self, step: Step) -> list[int]:
        """Reads the events of one step; returns the positions that are final now, in order."""
        final = []
        for event in (e for e in step.of(Cell) if e.level is None):
            place = event.position - self.start
            token, since = self.stood.get(place, (None, None))
            self.stood[place] = (event.token, since if token == event.token else event.iteration)
            if event.state in FINAL_STATES:
                text = self.vocabulary.get(event.token, b"").decode("utf-8", "replace")
                known = {"token": event.token, "text": text, "iteration": event.iteration}
                self.graph.add_node(place, **known, right_from=self.stood[place][1])
                final.append(place)
        for event in (e for e in step.of(Depend) if e.kind == "causal"):
            ends = event.source - self.start, event.target - self.start
            if all(end in self.graph for end in ends):
                self.graph.add_edge(*ends, weight=event.weight)
        for place in sorted(final):
            before = (
                self.graph.nodes[source].get("min_iterations", 0) for source in self.graph.predecessors(place)
            )
            self.graph.nodes[place]["min_iterations"] = 1 + max(before, default=0)
        return sorted(final)


@dataclass(frozen=True)
class CriticalPath:
    """The longest chain of positions, each of which waited for the one before: no order of work could have
    saved these iterations. `used`: iterations that were run.
    """

    positions: list[int]
    used: int

    @property
    def unavoidable(self) -> int:
        """Iterations that the chain alone takes."""
        return len(self.positions)


def critical_path(graph: nx.DiGraph) -> CriticalPath:
    """The critical path of a `dependencies` graph; empty if there are no positions."""
    used = len({known["iteration"] for _, known in graph.nodes(data=True)})
    return CriticalPath(nx.dag_longest_path(graph, weight=None) if graph else [], used)
