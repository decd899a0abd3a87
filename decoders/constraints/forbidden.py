"""What a lane's constraint removes from the target's distributions, recorded for pictures."""

import math
from typing import Any

import torch

from decoders.constraints.constraint import masked
from decoders.logits.distributions import MIN_LOGPROB, entropies, log_softmax
from decoders.observer import Observer
from decoders.trace.events import Distribution

TOP_FORBIDDEN = 4  # forbidden tokens that are recorded by name; the others are one mass


class ForbiddenTokens(Observer):
    """Records after each target distribution the most likely forbidden tokens, the mass of the other
    forbidden ones, how many are forbidden, and the entropy of what is left.
    """

    def predicted(self, lane: Any, nodes: list[int], logprobs: torch.Tensor) -> None:
        if lane.constraint is None:
            return
        for node, row in zip(nodes, logprobs, strict=True):
            if (mask := lane.constraint.mask(node)) is not None:
                event = forbidden_at(node, row, mask)
                lane.spell(token for token, _ in event.top)
                lane.record(event)


def forbidden_at(node: int, row: torch.Tensor, mask: torch.Tensor) -> Distribution:
    """The event for one node: its log-probabilities [V], and which tokens are allowed [V]."""
    left = masked(row[None], [mask])[0]
    forbidden = left == -torch.inf
    removed = row[forbidden]
    top = removed.topk(min(TOP_FORBIDDEN, len(removed)))
    ids = forbidden.nonzero()[:, 0][top.indices].tolist()
    pairs = [[i, v] for i, v in zip(ids, top.values.tolist(), strict=True) if v > -1e30]
    rest = max(0.0, float(removed.double().exp().sum()) - sum(math.exp(v) for _, v in pairs))
    kept = float(left.double().logsumexp(0))
    entropy = float(entropies(log_softmax(left))) if kept > -math.inf else 0.0
    kept = max(kept, MIN_LOGPROB)  # JSON has no infinity
    return Distribution(node, "forbidden", pairs, rest, entropy, among=len(removed), kept=kept)
