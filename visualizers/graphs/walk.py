"""A text as a walk over its tokens: one node a token, one edge a step from one token to the next.

Knows traces, no strategy.
"""

import networkx as nx

from decoders.trace import Trace
from visualizers.graphs.token_tree import token_tree

LONGEST_LOOP = 12  # tokens in a loop that is looked for


def walk(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """Prompt and output as a walk. Nodes are token ids with `text`, `visits` and `first` (the position of the
    first visit, 0 is the prompt's first token); edges have `times`.
    """
    tree = token_tree(trace, steps)
    tokens = [known["token"] for _, known in tree.nodes(data=True) if known["committed"] or known["step"] < 0]
    graph = nx.DiGraph(kind="walk", strategy=trace.strategy, title=trace.title, seed=trace.seed)
    for position, token in enumerate(tokens):
        if token not in graph:
            text = trace.vocabulary.get(token, b"").decode("utf-8", "replace")
            graph.add_node(token, text=text, visits=0, first=position)
        graph.nodes[token]["visits"] += 1
    for pair in zip(tokens, tokens[1:], strict=False):
        graph.add_edge(*pair, times=graph.edges.get(pair, {"times": 0})["times"] + 1)
    return graph


def loops(graph: nx.DiGraph, longest: int = LONGEST_LOOP) -> list[tuple[list[int], int]]:
    """The simple cycles of a walk of up to `longest` tokens, and how often each may have been gone round: the
    least `times` of its edges. Most often first, then the longer ones.
    """
    found = []
    for cycle in nx.simple_cycles(graph, length_bound=longest):
        pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        found.append((cycle, min(graph.edges[pair]["times"] for pair in pairs)))
    return sorted(found, key=lambda one: (-one[1], -len(one[0]), one[0]))
