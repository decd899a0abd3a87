"""Records what a trained head's guesses depend on, once for each depth that is drafted.

Uses only `sees` and `reach` of a module.
"""

from decoders.heads import DraftModule
from decoders.lane import Lane
from decoders.speculative.interfaces import Draft
from decoders.trace.scores import ScoreName

SEVERAL, FIRST = "several layers", "the first layers"


def record_sees(lane: Lane, module: DraftModule, draft: Draft, root: int, known: int = 0) -> int:
    """Records, for each depth of the draft beyond `known`, how many tokens from the root on its guesses look
    at, and which states of the target; returns the deepest depth recorded so far. root: the token that the
    target has chosen and not read.
    """
    depths = lane.tree.depths
    deepest = max((depths[node] - depths[root] for node in draft.nodes), default=0)
    parts = dict.fromkeys(parts_of(module), 1.0)
    for depth in range(known + 1, deepest + 1):
        reach = float(module.reach(depth))
        lane.record_measure(root, ScoreName.SEES, reach, level=f"depth {depth}", number=depth, **parts)
    return max(known, deepest)


def parts_of(module: DraftModule) -> list[str]:
    """What of the target its guesses look at, in the words of the record."""
    sees = module.sees
    return [sees.states, *([SEVERAL] if sees.layers else []), *([FIRST] if sees.first else [])]
