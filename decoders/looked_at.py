"""Where the model looked when it predicted the tokens that a lane commits.

Knows trees and events, no lane.
"""

from typing import Any

from decoders.engine.tree import Tree
from decoders.logits.distributions import fetched
from decoders.trace.events import Depend

SHOWN = 6  # strongest sources named for each committed token


def looked_at(tree: Tree, scorer: Any, nodes: list[int]) -> list[Depend]:
    """The strongest attention of the parents of these committed nodes, a path; none if the model of
    `scorer` has none.
    """
    child = {tree.parents[n]: n for n in nodes}
    attention = scorer.attention(list(child))
    if attention is None:
        return []
    seen, path, weights = attention
    count = min(SHOWN, len(path))
    top = weights.topk(count)
    return [
        Depend(path[int(index)], child[parent], weight, "attention")
        for parent, row in zip(seen, fetched(top.indices, top.values), strict=True)
        for index, weight in zip(row[:count], row[count:], strict=True)
        if weight > 0.0  # the first rows of a path see fewer nodes than are named
    ]
