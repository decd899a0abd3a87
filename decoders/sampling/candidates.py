"""The most likely tokens at a position, of which the one with the best score is taken: shared by
deterministic methods that weigh p against something else.

Knows one lane, not what the scores are made of.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from decoders.lane import Lane

Parts = dict[str, float]  # what a score is made of


@dataclass(frozen=True)
class Candidate:
    """A token after the lane's tip, as a node of the tree."""

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
    """Proposes the `count` most likely of logprobs [V] after the tip, most likely first, ties to the smaller
    token id; none that processors removed. target [V]: the model's own log-probabilities, where processors
    changed them.
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
    """Tells every candidate's score, commits the best, ties to the more likely one, and returns it; the
    others are pruned, `because(rank, count, parts)` says why.
    """
    order = sorted(range(len(candidates)), key=lambda i: -scores[i][0])
    for i, (candidate, (score, parts)) in enumerate(zip(candidates, scores, strict=True)):
        rank = order.index(i) + 1
        lane.record_score(candidate.node, name, score, rank, **parts)
        if rank > 1:
            lane.verdict(candidate.node, "pruned", reason=because(rank, len(candidates), parts))
    best = candidates[order[0]]
    lane.commit([best.node], [best.target])
    lane.drop([candidate.node for candidate in candidates if candidate is not best])
    return best
