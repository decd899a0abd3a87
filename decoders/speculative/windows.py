"""Windows: chains that a draft model writes on and on below any node, and what becomes of them from round to
round. Knows the draft model and nothing of the target.
"""

from decoders.lane import Lane
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.parts import SAMPLED, Draft
from decoders.speculative.rounds import law
from decoders.speculative.shapes import likeliest, open_ends, sampled

BEHIND = "It stands behind a token that was not accepted."
OVER = "The text ended before its turn."


def written(lane: Lane, draft: Draft, end: int, count: int) -> list[int]:
    """Up to `count` nodes, one below the other, that the draft model writes below `end`."""
    nodes, level = [], [end] if end == lane.tip else open_ends(lane, [end])
    while level and len(nodes) < count:
        scores = DRAFT_MODEL.scores(lane, level)  # [1, V]
        lane.distribution(level, scores, view="draft")
        if lane.parameters["temperature"] == 0.0:
            born = likeliest(lane, draft, level, scores, [1])
        else:
            born = sampled(lane, draft, level, law(lane, scores), [1], SAMPLED)
        nodes += born
        level = open_ends(lane, born)
    return nodes


def carried(draft: Draft, tip: int, window: list[int]) -> Draft:
    """What the next round needs of `draft`: the text ends in `tip` now and `window` is yet to be tested."""
    children = {n: draft.children[n] for n in (tip, *window) if n in draft.children}
    q = {n: draft.q[n] for n in children if n in draft.q}
    return Draft(tip, list(window), children, q, chance={n: draft.chance[n] for n in window})


def forget(lane: Lane, nodes: list[int], draft: Draft, reason: str) -> None:
    """Drafted nodes that no test will reach."""
    for node in nodes:
        lane.verdict(node, "never reached", q=draft.chance.get(node), reason=reason)
    lane.drop(nodes)
