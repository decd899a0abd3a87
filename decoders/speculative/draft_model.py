"""Drafter: a small model drafts a tree of fixed widths, one draft forward a level. A chain is a tree of
widths 1.

Knows the lane's draft model and nothing of the target. Children are drawn one after the other from what is
left of q (Gumbel top-k draws the same law), as in RSD-C (Jeon et al. 2024); at temperature 0 they are the
draft's likeliest tokens.
"""

import math

import torch

from decoders.lane import Lane
from decoders.speculative.parts import FIXED, SAMPLED, WITHOUT_REPLACEMENT, Draft, Drafter
from decoders.speculative.recursive_rejection import without
from decoders.speculative.rounds import law


def draft_model(widths: list[int], temperature: float) -> Drafter:
    """A drafter whose nodes at depth d have `widths[d]` children, fewer where q has no more tokens."""
    drawn = WITHOUT_REPLACEMENT if max(widths) > 1 else SAMPLED
    fill = FIXED if temperature == 0.0 else drawn
    fill_level = likeliest if temperature == 0.0 else sampled

    def propose(lane: Lane) -> Draft:
        draft, level, rows, asked = Draft(lane.tip), [lane.tip], [], []
        for width in widths[: lane.left - 1]:
            if not level:
                break
            scores = lane.process(lane.score(level, "draft", role="draft"), level)  # [level, V]
            rows.append(scores)
            asked += level
            born = fill_level(lane, draft, level, scores, width, fill)
            level = [n for n in born if lane.tree.tokens[n] not in lane.eos]  # nothing follows an end of text
        if rows:
            lane.distribution(asked, torch.cat(rows), view="draft")
        return draft

    shape = "a chain" if max(widths) == 1 else "a tree"
    takes = "the likeliest tokens" if temperature == 0.0 else "tokens drawn by chance"
    says = f"A second, smaller model guesses {shape} of {takes}, one forward of its own for each level."
    return Drafter(propose, fill, source="draft", name=f"{shape[2:]} from a draft model", says=says)


def likeliest(
    lane: Lane, draft: Draft, level: list[int], scores: torch.Tensor, width: int, fill: str
) -> list[int]:
    """The `width` likeliest tokens of each row of scores [level, V] as children; returns the new nodes."""
    logprobs = scores.log_softmax(-1)
    if width == 1:
        tokens = scores.argmax(-1, keepdim=True)  # ties as greedy decoding breaks them
        values = logprobs.gather(1, tokens)
    else:
        values, tokens = logprobs.topk(min(width, scores.shape[-1]), dim=-1)
    born = []
    for parent, row, chances in zip(level, tokens.tolist(), values.tolist(), strict=True):
        for token, logprob in zip(row, chances, strict=True):
            if logprob == -math.inf:
                break
            node = draft.propose(lane, parent, token, logprob, source="draft", fill=fill)
            draft.chance[node] = math.exp(logprob)
            born.append(node)
    return born


def sampled(
    lane: Lane, draft: Draft, level: list[int], scores: torch.Tensor, width: int, fill: str
) -> list[int]:
    """For each row of scores [level, V] up to `width` children drawn without replacement; returns the new
    nodes.

    The draws of one level are kept apart by the rank of the parent in its level and by the slot.
    """
    depth, born = lane.tree.depths[level[0]] + 1, []
    for rank, (parent, q) in enumerate(zip(level, law(lane, scores), strict=True)):
        draft.q[parent] = left = q
        for slot in range(width):
            if slot and not bool((left > 0).any()):
                break
            token = lane.chooser.categorical(left, ("draft", depth, rank, slot)).value
            chance = float(q[token])
            node = draft.propose(lane, parent, token, math.log(chance), source="draft", fill=fill)
            draft.chance[node] = chance
            born.append(node)
            if slot + 1 < width:
                left = without(left, token)
    return born
