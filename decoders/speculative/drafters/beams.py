"""Shapes made of whole chains that share their prefixes: the beams of a recurrent drafter, and the best of
all combinations of the most likely tokens.

Chains are rows of a table; entries whose rows agree so far are one node, so the target reads each once
(Zhang et al. 2024, Recurrent Drafter, section 3.2).
"""

import math
from collections.abc import Sequence

import torch

from decoders.lane import Lane
from decoders.speculative.drafters.dynamic_trees import best_children
from decoders.speculative.drafters.fixed_trees import Guess, largest, likeliest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Shape
from decoders.trace.scores import ScoreName

TINY = 1e-300  # in place of 0 under a logarithm


def packed(rows: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Which entries of a table of rows of tokens are read, numbered row by row, and for each row the places
    of its entries among these. Entries of a column share a place if their rows agree up to there.
    """
    places, kept, unpacked, flat = {}, [], [], 0
    for row in rows:
        unpacked.append([])
        for column in range(len(row)):
            prefix = tuple(row[: column + 1])
            if prefix not in places:
                places[prefix] = len(kept)
                kept.append(flat)
            unpacked[-1].append(places[prefix])
            flat += 1
    return kept, unpacked


def path_of(lane: Lane, draft: Draft, leaf: int) -> list[int]:
    """The drafted nodes from the root's child down to `leaf`."""
    path = []
    while leaf != draft.root:
        path.append(leaf)
        leaf = lane.tree.parents[leaf]
    return path[::-1]


def keep_chains(lane: Lane, draft: Draft, leaves: list[int], max_chains: int, nodes: int) -> None:
    """Prunes all but the first `max_chains` of the chains that end in `leaves`, fewer if they have more than
    `nodes` nodes together, and records how many entries their nodes stand for.
    """
    kept, rows = set(), []
    for leaf in leaves[:max_chains]:
        path = path_of(lane, draft, leaf)
        if len(kept.union(path)) > nodes:
            break
        kept.update(path)
        rows.append([draft.root, *path])
    lost = [node for node in draft.nodes if node not in kept]
    if lost:
        draft.prune(lane, lost, "It is on none of the chains that were kept.")
    if rows:
        read, _ = packed(rows)
        entries = sum(map(len, rows))
        lane.record_measure(draft.root, ScoreName.PACKED, len(read), entries=entries, chains=len(rows))


def beams(width: int, length: int, nodes: int) -> Shape:
    """Beam search of the source: on each level the `width` best chains continue, ended ones among them. At
    most `nodes` nodes. Nothing is drawn.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        value, ends = {lane.tip: 0.0}, [lane.tip]  # values are logarithms
        for _ in range(min(length, max_levels)):
            level = [end for end in ends if end == lane.tip or lane.tree.tokens[end] not in lane.eos]
            if not level:
                break
            ended = [(value[end], end, None) for end in ends if end not in level]
            best = [*best_children(level, guess(level), width, value), *ended]
            ends = []
            for total, node, token in sorted(best, key=lambda one: -one[0])[:width]:
                if token is not None:
                    logprob = total - value[node]
                    node = draft.propose(lane, node, token, logprob, source="draft", fill=FIXED)
                value[node] = total
                ends.append(node)
        keep_chains(lane, draft, [end for end in ends if end != draft.root], width, nodes)

    return Shape(
        grow, FIXED, "beams", f"Beam search keeps its {width} best chains, and common prefixes are shared."
    )


def best_chains(width: int, length: int, nodes: int) -> Shape:
    """All chains of the `width` most likely tokens, then one fewer on each level; the `width` best of them
    are the draft, at most `nodes` nodes. Nothing is drawn.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        level, value, leaves = [lane.tip], {lane.tip: 0.0}, []
        deepest = min(length, max_levels)
        for depth in range(deepest):
            if not level:
                break
            scores, children = guess(level), max(1, width - depth)
            if depth + 1 == deepest:
                leaves = best_ends(lane, draft, level, scores, children, value, leaves, width)
                break
            born = likeliest(lane, draft, level, scores, [children] * len(level))
            for node in born:
                parent = lane.tree.parents[node]
                value[node] = value[parent] + math.log(max(draft.probability[node], TINY))
            level = open_ends(lane, born)
            leaves += [node for node in born if node not in level]
        keep_chains(lane, draft, sorted(leaves, key=lambda node: (-value[node], node)), width, nodes)

    return Shape(
        grow,
        FIXED,
        "best chains",
        f"Of all combinations of the most likely tokens the best {width} chains are kept.",
    )


def best_ends(
    lane: Lane,
    draft: Draft,
    level: list[int],
    scores: torch.Tensor,
    children: int,
    value: dict[int, float],
    ended: list[int],
    max_chains: int,
) -> list[int]:
    """The ends of the `max_chains` best chains: those of `ended`, and those that end in one of the `children`
    most likely tokens below a node of `level`; only the best of these are drafted. scores [level, V].
    """
    values, tokens = largest(scores.log_softmax(-1), children)
    candidates = [(value[node], node, None, 0.0) for node in ended]
    for node, row, logprobs in zip(level, tokens.tolist(), values.tolist(), strict=True):
        pairs = zip(row, logprobs, strict=True)
        candidates += [(value[node] + logp, node, token, logp) for token, logp in pairs if logp > -math.inf]
    ends = []
    for total, node, token, logprob in sorted(candidates, key=lambda one: -one[0])[:max_chains]:
        if token is not None:
            node = draft.propose(lane, node, token, logprob, source="draft", fill=FIXED)
            value[node] = total
        ends.append(node)
    return ends
