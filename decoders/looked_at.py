"""Where the model looked when it predicted the tokens that a lane commits. Knows lanes and events."""

from typing import TYPE_CHECKING

from decoders.trace import Depend

if TYPE_CHECKING:
    from decoders.lane import Lane

SHOWN = 6  # strongest sources named for each committed token


def looked_at(lane: "Lane", nodes: list[int]) -> list[Depend]:
    """The strongest attention of the parents of these committed nodes, a path; none if the model has none."""
    child = {lane.tree.parents[n]: n for n in nodes}
    found = lane.scorers["target"].attention(list(child))
    if found is None:
        return []
    seen, path, weights = found
    top = weights.topk(min(SHOWN, len(path)))
    return [
        Depend(path[index], child[parent], weight, "attention")
        for parent, at, strengths in zip(seen, top.indices.tolist(), top.values.tolist(), strict=True)
        for index, weight in zip(at, strengths, strict=True)
        if weight > 0.0  # the first rows of a path see fewer nodes than are named
    ]
