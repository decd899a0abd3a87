"""The strongest attention from each committed token's prediction to earlier tokens, as events."""

from typing import Any

from decoders.engine.tree import Tree
from decoders.logits.distributions import fetched
from decoders.observer import Observer
from decoders.trace.events import Depend

SHOWN = 6  # strongest sources named for each committed token


class AttentionSources(Observer):
    """Records them where the target's engine gives attention."""

    def committed(self, lane: Any, nodes: list[int]) -> None:
        lane.record(*attention_sources(lane.tree, lane.scorers["target"], nodes))


def attention_sources(tree: Tree, scorer: Any, nodes: list[int]) -> list[Depend]:
    """For committed nodes along one path: the SHOWN strongest attention weights of each node's parent, from
    which the node was predicted. Empty if the scorer gives no attention.
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
