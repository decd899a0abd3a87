"""Shapes of a draft: a chain, a tree of fixed widths, or several chains.

Where slots are filled at random, children are drawn one after the other from what is left of q (Gumbel top-k
draws the same distribution), as in RSD-C (Jeon et al. 2024), or each from the whole of q, as in SpecTr (Sun
et al. 2023), MCSD (Yang et al. 2024) and SpecInfer (Miao et al. 2023). At temperature 0 they are the
most likely tokens.
"""

import math
from collections import Counter
from collections.abc import Callable

import torch

from decoders.lane import Lane
from decoders.logits.distributions import without
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    WITH_REPLACEMENT,
    WITHOUT_REPLACEMENT,
    Draft,
    Shape,
)

BLOCK = 32  # values whose maximum is taken at once, see `largest`
MANY = 8192  # values from which on that is faster
Guess = Callable[[list[int]], torch.Tensor]


def widths(children: list[int], temperature: float, replacement: bool = False) -> Shape:
    """A tree whose nodes at depth d have `children[d]` children, fewer where q has no more tokens or, with
    replacement, where a token was drawn again: then more is drawn below it. A chain is a tree of widths 1.
    """
    several = max(children) > 1
    drawn = (WITH_REPLACEMENT if replacement else WITHOUT_REPLACEMENT) if several else SAMPLED
    fill = FIXED if temperature == 0.0 else drawn

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        level, copies = [lane.tip], Counter([lane.tip])
        for count in children[:max_levels]:
            if not level:
                break
            scores = guess(level)  # [level, V]
            if fill == FIXED:
                born = likeliest(lane, draft, level, scores, [count] * len(level))
            elif fill == WITH_REPLACEMENT:
                copies = repeated(
                    lane, draft, level, distributions(lane, scores), [count * copies[n] for n in level]
                )
                born = list(copies)
            else:
                born = sampled(lane, draft, level, distributions(lane, scores), [count] * len(level), fill)
            level = open_ends(lane, born)

    name, is_chain = shape_name(children, fill), not several
    return Shape(grow, fill, name, f"It drafts {SAYS[fill]}.", is_chain=is_chain)


def skeleton(children: dict[tuple[int, ...], int], temperature: float) -> Shape:
    """A tree whose form is fixed: `children` maps a path of slots, () being the root, to how many children
    that node has. They are drawn without replacement; fewer where q has no more tokens.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        paths = {lane.tip: ()}
        for _ in range(max_levels):
            level = [n for n in paths if paths[n] in children]
            if not level:
                break
            scores, counts = guess(level), [children[paths[n]] for n in level]
            if fill == FIXED:
                born = likeliest(lane, draft, level, scores, counts)
            else:
                born = sampled(lane, draft, level, distributions(lane, scores), counts, fill)
            above = {n: paths[lane.tree.parents[n]] for n in born}
            slot = {n: draft.children[lane.tree.parents[n]].index(n) for n in born}
            paths = {n: (*above[n], slot[n]) for n in open_ends(lane, born)}

    return Shape(grow, fill, "tree of a fixed shape", f"It drafts {SAYS[fill]}, in a fixed shape.")


def shape_name(children: list[int], fill: str) -> str:
    """What a tree of these widths is called."""
    if max(children) == 1:
        return "chain"
    return (
        "several chains"
        if fill == WITH_REPLACEMENT and max(children[1:], default=1) == 1
        else "tree of fixed widths"
    )


SAYS = {
    FIXED: "the most likely tokens at each position",
    SAMPLED: "one sampled token at each position",
    WITHOUT_REPLACEMENT: "several tokens at each position, sampled without replacement",
    WITH_REPLACEMENT: "several tokens at each position, each sampled from the whole distribution",
}


def open_ends(lane: Lane, nodes: list[int]) -> list[int]:
    """Those of `nodes` that may have children: nothing follows an end-of-text token."""
    return [n for n in nodes if lane.tree.tokens[n] not in lane.eos]


def likeliest(
    lane: Lane, draft: Draft, level: list[int], scores: torch.Tensor, counts: list[int], source: str = "draft"
) -> list[int]:
    """The most likely tokens of each row of scores [level, V] as children, as many as `counts` says; returns
    their nodes. A token that another draft model has proposed there shares its node; `source`: who guesses.
    """
    logprobs, widest = scores.log_softmax(-1), max(counts)
    if widest == 1:
        tokens = scores.argmax(-1, keepdim=True)  # ties as greedy decoding breaks them
        values = logprobs.gather(1, tokens)
    else:
        values, tokens = largest(logprobs, widest)
    born = []
    for parent, count, row, row_logprobs in zip(level, counts, tokens.tolist(), values.tolist(), strict=True):
        node_of = draft.below(lane, parent)
        for token, logprob in zip(row[:count], row_logprobs, strict=False):
            if logprob == -math.inf:
                break
            if token not in node_of:
                node_of[token] = draft.propose(lane, parent, token, logprob, source=source, fill=FIXED)
            born.append(node_of[token])
    return born


def largest(values: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` largest of each row of values [N, V], the largest first, and their places; all, if there
    are fewer.

    All of them lie in the `count` blocks with the largest maxima: on a CPU, with many values, searching only
    these is up to five times as fast as one `topk`.
    """
    rows, size = values.shape
    if size % BLOCK or size <= count * BLOCK or rows * size < MANY:
        return tuple(values.topk(min(count, size)))
    blocks = values.view(rows, -1, BLOCK)
    at = blocks.amax(-1).topk(count).indices  # [N, count]
    best = blocks.gather(1, at[..., None].expand(-1, -1, BLOCK)).flatten(1).topk(count)
    return best.values, at.gather(1, best.indices // BLOCK) * BLOCK + best.indices % BLOCK


def sampled(
    lane: Lane, draft: Draft, level: list[int], probs: torch.Tensor, counts: list[int], fill: str
) -> list[int]:
    """For each distribution q of `probs` [level, V] up to as many children drawn from it as `counts`
    says; returns the new nodes.

    The tag of a draw names the depths of the root and of the level, the rank of the parent in its level and
    the slot: a verifier may have seen draws of an earlier round that were not used.
    """
    root, depth, born = lane.tree.depths[draft.root], lane.tree.depths[level[0]] + 1, []
    for rank, (parent, q, count) in enumerate(zip(level, probs, counts, strict=True)):
        draft.q[parent] = left = q
        for slot in range(count):
            if slot and not bool((left > 0).any()):
                break
            token = lane.chooser.categorical(left, ("draft", root, depth, rank, slot)).value
            born.append(
                draft.propose(lane, parent, token, math.log(float(q[token])), source="draft", fill=fill)
            )
            if slot + 1 < count and fill == WITHOUT_REPLACEMENT:
                left = without(left, token)
    return born


def repeated(
    lane: Lane, draft: Draft, level: list[int], probs: torch.Tensor, counts: list[int], source: str = "draft"
) -> Counter:
    """For each distribution q of `probs` [level, V] as many draws from it as `counts` says; equal
    tokens share a node, also with those of another draft model (`source`). Returns how often each node was
    drawn.
    """
    root, depth, born = lane.tree.depths[draft.root], lane.tree.depths[level[0]] + 1, Counter()
    whose = () if source == "draft" else (source,)
    for rank, (parent, q, count) in enumerate(zip(level, probs, counts, strict=True)):
        draft.q.setdefault(parent, q)
        node_of = draft.below(lane, parent)
        for slot in range(count):
            token = lane.chooser.categorical(q, ("draft", root, depth, rank, slot, *whose)).value
            if token not in node_of:
                logprob = math.log(float(q[token]))
                node_of[token] = draft.propose(
                    lane, parent, token, logprob, source=source, fill=WITH_REPLACEMENT
                )
            draft.draws.setdefault(parent, []).append(node_of[token])
            draft.draw_probs.setdefault(parent, []).append(q)
            born[node_of[token]] += 1
    return born
