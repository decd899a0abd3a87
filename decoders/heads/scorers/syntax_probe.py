"""The probe of AST-Probe (Hernández López et al. 2022): a linear map from states to a syntactic subspace,
from which three read-outs recover a syntax tree.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

RANK, START, KEEPS_APART = (
    64,
    0.05,
    5.0,
)  # r (128 in the paper, for d = 768); of P at first; weight of P'P = I
MARGIN = 1.0


class SyntaxProbe(nn.Module):
    """P [d, r], C [r, labels], U [r, unary labels] for the states after one layer. `scale`: divides the
    states, their root mean square in the training texts (our addition, since layers differ in scale).
    """

    def __init__(self, width: int, labels: Sequence[str], unary: Sequence[str], rank: int = RANK):
        super().__init__()
        self.names, self.unary_names = list(labels), list(unary)
        self.projection = nn.Parameter(torch.empty(width, rank).uniform_(-START, START))
        self.labels = nn.Parameter(torch.empty(rank, len(self.names)).uniform_(-START, START))
        self.unary = nn.Parameter(torch.empty(rank, len(self.unary_names)).uniform_(-START, START))
        self.register_buffer("scale", torch.tensor(1.0))

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """For the states of leaves [B, n, d]: (heights of their gaps `||s_{t+1} - s_t||^2` [B, n - 1], logits
        of the gaps' labels [B, n - 1, C], logits of the leaves' unary labels [B, n, U]).
        """
        places = words / self.scale @ self.projection  # [B, n, r]
        steps = places[:, 1:] - places[:, :-1]
        return steps.square().sum(-1), steps @ self.labels, places @ self.unary

    @torch.no_grad()
    def predict(self, words: torch.Tensor) -> tuple[list[float], list[str], list[str]]:
        """Heights, labels and unary labels of one text's leaves [n, d], as `tree_of` takes them."""
        heights, labels, unary = self(words[None])
        names = [self.names[at] for at in labels[0].argmax(-1).tolist()]
        return heights[0].tolist(), names, [self.unary_names[at] for at in unary[0].argmax(-1).tolist()]

    def apart(self) -> torch.Tensor:
        """`||P'P - I||_F^2`: how far the axes are from orthonormal."""
        inner = self.projection.T @ self.projection
        return (inner - torch.eye(len(inner), device=inner.device)).square().sum()

    def loss(
        self, words: torch.Tensor, heights: torch.Tensor, labels: torch.Tensor, unary: torch.Tensor
    ) -> torch.Tensor:
        """Hinge loss on the order of heights, cross-entropy of both labels, and `5 ||P'P - I||_F^2`.

        heights [B, n - 1], padded with 0; labels [B, n - 1] and unary [B, n], padded with -100.
        """
        predicted, of_gaps, of_leaves = self(words)
        return (
            order_loss(predicted, heights)
            + F.cross_entropy(of_gaps.flatten(0, 1), labels.flatten())
            + F.cross_entropy(of_leaves.flatten(0, 1), unary.flatten())
            + KEEPS_APART * self.apart()
        )


def order_loss(predicted: torch.Tensor, heights: torch.Tensor) -> torch.Tensor:
    """`max(0, 1 - (predicted_a - predicted_b))`, averaged over all pairs of gaps of a text with height a >
    height b, then over texts. predicted, heights [B, G]; height 0 is padding.
    """
    higher = (heights[:, :, None] > heights[:, None, :]) & (heights[:, None, :] > 0)  # [B, G, G]
    lacks = (MARGIN - (predicted[:, :, None] - predicted[:, None, :])).clamp(min=0)
    counts = higher.sum((1, 2))
    means = (lacks * higher).sum((1, 2)) / counts.clamp(min=1)
    return means[counts > 0].mean() if (counts > 0).any() else predicted.sum() * 0
