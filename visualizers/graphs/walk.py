"""A text as a walk over its tokens: one node per token, one edge per step from one token to the next."""

from itertools import islice

import networkx as nx

from decoders.trace.trace import Trace
from visualizers.graphs.token_tree import token_tree

LONGEST_LOOP = 12  # tokens
MAX_LOOPS = 10_000  # loops that are examined


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
    """Takes one step of the walk, from the token `before` (None: it begins) to `token`."""
    if token not in graph:
        text = vocabulary.get(token, b"").decode("utf-8", "replace")
        graph.add_node(token, text=text, visits=0, first=position)
    graph.nodes[token]["visits"] += 1
    if before is not None:
        graph.add_edge(before, token, times=graph.edges.get((before, token), {"times": 0})["times"] + 1)


def loops(
    graph: nx.DiGraph, longest: int = LONGEST_LOOP, max_loops: int = MAX_LOOPS
) -> list[tuple[list[int], int]]:
    """The simple cycles of at most `longest` tokens in a walk, and how often each can have been traversed:
    the smallest `times` of its edges. The most frequent come first, then the longer ones. A varied text has
    more cycles than can be listed, so only the first `max_loops` are examined.
    """
    cycles = [
        (cycle, _rounds(graph, cycle))
        for cycle in islice(nx.simple_cycles(graph, length_bound=longest), max_loops)
    ]
    return sorted(cycles, key=lambda one: (-one[1], -len(one[0]), one[0]))


def loop_of(graph: nx.DiGraph, before: int, token: int) -> tuple[list[int], int] | None:
    """The shortest cycle through the edge from `before` to `token` whose edges were all taken more than once,
    and how often it can have been traversed; None if there is none. Costs one breadth-first search.
    """
    again = nx.subgraph_view(graph, filter_edge=lambda a, b: graph.edges[a, b]["times"] > 1)
    if not again.has_edge(before, token) or not nx.has_path(again, token, before):
        return None
    cycle = nx.shortest_path(again, token, before)
    return cycle, _rounds(graph, cycle)


def _rounds(graph: nx.DiGraph, cycle: list[int]) -> int:
    return min(graph.edges[pair]["times"] for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
