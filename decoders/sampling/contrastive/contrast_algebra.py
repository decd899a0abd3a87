"""One algebra for methods that contrast several distributions over the next token.

A view is a row of next-token scores: the model's own, after another prompt, of another model, or after fewer
layers. A contrast is a weighted sum of log-probabilities, before any processor, perhaps only over tokens that
are plausible under the first view.
"""

import math
from dataclasses import dataclass

import torch

from decoders.logits.distributions import log_softmax

FLOOR = -1e4  # stands for log 0 in a view that is subtracted


@dataclass(frozen=True)
class Contrast:
    """`weights`: one per view, the wanted one first. `alpha`: tokens with less than this share of the first
    view's largest probability are excluded; None excludes none.
    """

    weights: tuple[float, ...]
    alpha: float | None = None

    def combine(self, rows: list[torch.Tensor]) -> torch.Tensor:
        """Scores [N, V] from the rows [N, V] of the views, logits or log-probabilities; -inf for excluded
        tokens.
        """
        logs = [log_softmax(row) for row in rows]
        total = sum(weight * row.clamp(min=FLOOR) for weight, row in zip(self.weights, logs, strict=True))
        wanted = logs[0]
        out = wanted == -math.inf
        if self.alpha is not None:
            out = out | ~plausible(wanted, self.alpha)
        return total.masked_fill(out, -math.inf)


def plausible(row: torch.Tensor, alpha: float) -> torch.Tensor:
    """Whether each token of `row` [N, V] has at least `alpha` times the largest probability: bool [N, V]."""
    if alpha == 0.0:
        return torch.ones_like(row, dtype=torch.bool)
    return row >= row.max(dim=-1, keepdim=True).values + math.log(alpha)


def guided(gamma: float) -> Contrast:
    """Classifier-free guidance: `z_u + gamma (z_c - z_u)`."""
    return Contrast((gamma, 1.0 - gamma))


def amplified(weight: float, alpha: float | None = None) -> Contrast:
    """`(1 + weight) z_c - weight z_u`: context-aware decoding, and contrastive decoding in its form of
    2023.
    """
    return Contrast((1.0 + weight, -weight), alpha)


def reduced(weight: float) -> Contrast:
    """Instructive decoding: `z_c - weight z_u`."""
    return Contrast((1.0, -weight))


def ratio(alpha: float) -> Contrast:
    """`log p_c - log p_u`: contrastive decoding in its form of 2022, and DoLa."""
    return Contrast((1.0, -1.0), alpha)


def styled(condition: float, unconditional: float) -> Contrast:
    """Guidance of a language model q: `log q + a log p_c - b log p_u`; the views are p_c, p_u and q."""
    return Contrast((condition, -unconditional, 1.0))
