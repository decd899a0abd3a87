"""A text as a walk over its tokens: one node per token, one edge per step from one token to the next.

Knows traces, no strategy.
"""

from itertools import islice

import networkx as nx

from decoders.trace.trace import Trace
from visualizers.graphs.token_tree import token_tree

LONGEST_LOOP = 12  # tokens in a loop that is looked for
MAX_LOOPS = 10_000  # loops that are looked at


def walk(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """Prompt and output as a walk. Nodes are token ids with `text`, `visits` and `first` (the position of the
    first visit, 0 is the prompt's first token); edges have `times`.
    """
    tree = token_tree(trace, steps)
    tokens = [known["token"] for _, known in tree.nodes(data=True) if known["committed"] or known["step"] < 0]
    graph = nx.DiGraph(kind="walk", strategy=trace.strategy, title=trace.title, seed=trace.seed)
    before = None
    for position, token in enumerate(tokens):
        go(graph, before, token, position, trace.vocabulary)
        before = token
    return graph


def go(
    graph: nx.DiGraph, before: int | None, token: int, position: int, vocabulary: dict[int, bytes]
) -> None:
    """The walk goes from one token (None: it begins) to the next."""
    if token not in graph:
        text = vocabulary.get(token, b"").decode("utf-8", "replace")
        graph.add_node(token, text=text, visits=0, first=position)
    graph.nodes[token]["visits"] += 1
    if before is not None:
        graph.add_edge(before, token, times=graph.edges.get((before, token), {"times": 0})["times"] + 1)


def loops(
    graph: nx.DiGraph, longest: int = LONGEST_LOOP, max_loops: int = MAX_LOOPS
) -> list[tuple[list[int], int]]:
    """The simple cycles of a walk of up to `longest` tokens, and how often each may have been gone round: the
    smallest `times` of its edges. Most often first, then the longer ones. A text that goes everywhere has
    more cycles than can be listed: only the first `max_loops` are looked at.
    """
    cycles = [
        (cycle, _rounds(graph, cycle))
        for cycle in islice(nx.simple_cycles(graph, length_bound=longest), max_loops)
    ]
    return sorted(cycles, key=lambda one: (-one[1], -len(one[0]), one[0]))


def loop_of(graph: nx.DiGraph, before: int, token: int) -> tuple[list[int], int] | None:
    """The shortest cycle over the way from `before` to `token`, and how often it may have been gone round;
    None if there is none all of whose ways were taken again. Costs one search in breadth, whatever the walk.
    """
    again = nx.subgraph_view(graph, filter_edge=lambda a, b: graph.edges[a, b]["times"] > 1)
    if not again.has_edge(before, token) or not nx.has_path(again, token, before):
        return None
    cycle = nx.shortest_path(again, token, before)
    return cycle, _rounds(graph, cycle)


def _rounds(graph: nx.DiGraph, cycle: list[int]) -> int:
    return min(graph.edges[pair]["times"] for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
