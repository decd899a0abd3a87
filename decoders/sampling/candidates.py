"""Takes the best-scoring of the most likely tokens: shared by deterministic methods that weigh p against
something else.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from decoders.lane import Lane

Parts = dict[str, float]  # the terms of a score by name


@dataclass(frozen=True)
class Candidate:
    """A proposed token after the lane's tip."""

    node: int
    token: int
    logprob: float  # after the processors
    target: float  # the model's own, before them

    @property
    def p(self) -> float:
        return math.exp(self.logprob)


def likeliest(
    lane: Lane, logprobs: torch.Tensor, count: int, target: torch.Tensor | None = None
) -> list[Candidate]:
    """Proposes the `count` most likely tokens after the tip, most likely first, ties to the smaller token id,
    without those that processors removed. logprobs [V]: after processors; target [V]: the model's own, if
    they differ.
    """
    target = logprobs if target is None else target
    top = logprobs.topk(min(count, len(logprobs)))
    offers = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [
        Candidate(lane.propose(lane.tip, token, logprob, slot=slot), token, logprob, float(target[token]))
        for slot, (token, logprob) in enumerate(sorted(offers, key=lambda offer: (-offer[1], offer[0])))
        if logprob > -math.inf
    ]


def take_best(
    lane: Lane,
    name: str,
    candidates: list[Candidate],
    scores: list[tuple[float, Parts]],
    because: Callable[[int, int, Parts], str],
) -> Candidate:
    """Records every candidate's score, commits the best (ties to the more likely one) and returns it. The
    others are pruned for the reason `because(rank, count, parts)`.
    """
    order = sorted(range(len(candidates)), key=lambda i: -scores[i][0])
    for i, (candidate, (score, parts)) in enumerate(zip(candidates, scores, strict=True)):
        rank = order.index(i) + 1
        lane.record_rank(candidate.node, name, score, rank, **parts)
        if rank > 1:
            lane.verdict(candidate.node, "pruned", reason=because(rank, len(candidates), parts))
    best = candidates[order[0]]
    lane.commit([best.node], [best.target])
    lane.drop([candidate.node for candidate in candidates if candidate is not best])
    return best
