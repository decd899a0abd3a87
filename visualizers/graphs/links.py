"""What came from what: attention between tokens, and what positions of a parallel decoder waited for.

Knows events, no strategy.
"""

from dataclasses import dataclass

import networkx as nx

from decoders.trace import Cell, Depend, Trace
from visualizers.graphs.token_tree import token_tree


def attention(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """An edge from each token that was looked at to the token that was predicted from there, with `weight`
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
    for it. Nodes have `token`, `text`, `iteration` (in which it became final) and, where a guess was right
    before, `right_from` (the iteration since which the final token stood there).
    """
    graph = nx.DiGraph(kind="dependencies", strategy=trace.strategy, title=trace.title, seed=trace.seed)
    start, stood = len(trace.prompt) - 1, {}
    for event in (e for s in trace.steps[:steps] for e in s.events):
        match event:
            case Cell(level=None):
                place = event.position - start
                token, since = stood.get(place, (None, None))
                stood[place] = (event.token, since if token == event.token else event.iteration)
                if event.state == "settled":
                    text = trace.vocabulary.get(event.token, b"").decode("utf-8", "replace")
                    known = {"token": event.token, "text": text, "iteration": event.iteration}
                    graph.add_node(place, **known, right_from=stood[place][1])
            case Depend(kind="causal"):
                graph.add_edge(event.source - start, event.target - start, weight=event.weight)
    graph.remove_nodes_from([n for n, known in graph.nodes(data=True) if "token" not in known])
    return graph


@dataclass(frozen=True)
class CriticalPath:
    """The longest chain of positions each of which waited for the one before: that many iterations no order
    of work could have saved. `used`: iterations that were run.
    """

    positions: list[int]
    used: int

    @property
    def unavoidable(self) -> int:
        """Iterations that the chain alone takes."""
        return len(self.positions)


def critical_path(graph: nx.DiGraph) -> CriticalPath:
    """Of a `dependencies` graph. Without any position it is empty."""
    used = len({known["iteration"] for _, known in graph.nodes(data=True)})
    return CriticalPath(nx.dag_longest_path(graph, weight=None) if graph else [], used)
