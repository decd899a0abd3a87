"""One algebra for methods that weigh several views of the next token against each other.

A view is a row of next-token scores: the model's own, after another prompt, of another model, after fewer
layers. A contrast is a weighted sum of their logarithms, before any processor, perhaps only over tokens that
the first view finds plausible. Knows rows, no models, no lanes and no method.
"""

import math
from dataclasses import dataclass

import torch

from decoders.logits.distributions import log_softmax

FLOOR = -1e4  # stands for the logarithm of 0 in a view that is subtracted


@dataclass(frozen=True)
class Contrast:
    """`weights`: one a view, the wanted one first. `alpha`: tokens with less than this share of the first
    view's largest probability are left out; None leaves none out.
    """

    weights: tuple[float, ...]
    alpha: float | None = None

    def combine(self, rows: list[torch.Tensor]) -> torch.Tensor:
        """Scores [N, V] out of one row [N, V] a view, logits or log-probabilities; -inf: left out."""
        logs = [log_softmax(row) for row in rows]
        total = sum(weight * row.clamp(min=FLOOR) for weight, row in zip(self.weights, logs, strict=True))
        wanted = logs[0]
        out = wanted == -math.inf
        if self.alpha is not None:
            out = out | ~plausible(wanted, self.alpha)
        return total.masked_fill(out, -math.inf)


def plausible(row: torch.Tensor, alpha: float) -> torch.Tensor:
    """Which tokens of `row` [N, V] have at least `alpha` times the largest probability: [N, V] of bool."""
    if alpha == 0.0:
        return torch.ones_like(row, dtype=torch.bool)
    return row >= row.max(dim=-1, keepdim=True).values + math.log(alpha)


def guided(gamma: float) -> Contrast:
    """Classifier-free guidance: `z_u + gamma (z_c - z_u)`."""
    return Contrast((gamma, 1.0 - gamma))


def amplified(weight: float, alpha: float | None = None) -> Contrast:
    """`(1 + weight) z_c - weight z_u`: context-aware decoding, contrastive decoding as of 2023."""
    return Contrast((1.0 + weight, -weight), alpha)


def reduced(weight: float) -> Contrast:
    """Instructive decoding: `z_c - weight z_u`."""
    return Contrast((1.0, -weight))


def ratio(alpha: float) -> Contrast:
    """`log p_c - log p_u`: contrastive decoding as of 2022, DoLa."""
    return Contrast((1.0, -1.0), alpha)


def styled(condition: float, unconditional: float) -> Contrast:
    """Guidance of a language model q: `log q + a log p_c - b log p_u`; the views are p_c, p_u and q."""
    return Contrast((condition, -unconditional, 1.0))
