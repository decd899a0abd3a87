"""Clover's tree: few nodes, and no branches where the source has no likely alternative (Xiao et al. 2024,
section 3.4).
"""

import torch

from decoders.lane import Lane
from decoders.speculative.drafters.fixed_trees import Guess, largest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Shape

WIDEST = 8  # children considered per node


def cut_children(probs: torch.Tensor, top_p: float, share: float) -> int:
    """How many of a node's most likely children stay; probs [C], descending: the fewest whose mass exceeds
    top_p, without those below `share` of the best one.
    """
    before = probs.cumsum(0) - probs
    return max(1, int(((before < top_p) & (probs >= share * probs[0])).sum()))


def cut_tree(nodes: int, depth: int, top_p: float, share: float) -> Shape:
    """Level by level the children that `cut_children` leaves, the most likely paths first, until `nodes`
    nodes are drafted: a level leaves at least one node for each deeper one. Nothing is drawn.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        value, level, levels = {lane.tip: 0.0}, [lane.tip], min(depth, max_levels)
        for at in range(levels):
            room = nodes - len(draft.nodes)
            if not level or not room:
                break
            born = offers(guess(level), level, value, top_p, share)
            level = []
            for total, parent, token, logprob in born[: max(1, room - (levels - 1 - at))]:
                node = draft.propose(lane, parent, token, logprob, source="draft", fill=FIXED)
                value[node] = total
                level.append(node)
            level = open_ends(lane, level)

    return Shape(
        grow,
        FIXED,
        "tree with cuts",
        f"A node's children are the smallest set with more than {top_p:g} together, none below {share:g} "
        f"of the "
        f"best; the most likely paths get the {nodes} nodes.",
    )


def offers(
    scores: torch.Tensor, level: list[int], value: dict[int, float], top_p: float, share: float
) -> list[tuple[float, int, int, float]]:
    """(value of the path, parent, token, log-probability) of the children of a level that stay, the
    most likely path first; scores [level, V].
    """
    logprobs, tokens = largest(scores.float().log_softmax(-1), WIDEST)
    candidates = []
    for parent, row, row_tokens in zip(level, logprobs, tokens.tolist(), strict=True):
        for at in range(cut_children(row.exp(), top_p, share)):
            logprob = float(row[at])
            candidates.append((value[parent] + logprob, parent, row_tokens[at], logprob))
    return sorted(candidates, key=lambda one: -one[0])
