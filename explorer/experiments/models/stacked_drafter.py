"""EAGLE's drafter with several decoder layers instead of one, so that its size can vary (Scylla, 2025)."""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads import Taps, Target
from decoders.heads.feature_drafters.eagle import TOKEN_WEIGHT
from decoders.heads.feature_drafters.feature_drafter import FeatureDrafter
from decoders.heads.parts.layers import DecoderLayer, Past, one_after_another
from decoders.heads.parts.module import cross_entropy, with_uniform_noise


class StackedDrafter(FeatureDrafter):
    """Entry i reads join[E(token i + 1); state i], then `layers` decoder layers, the first without its first
    norm; their output stands for state i + 1, and the target's head makes a guess of it.
    """

    kind = "stacked"

    def __init__(self, target: Target, layers: int, intermediate: int):
        super().__init__(target, layers=layers, intermediate=intermediate)
        self.join = nn.Linear(2 * target.width, target.width)
        self.layers = nn.ModuleList(
            DecoderLayer(target.width, target.heads, intermediate, target.theta, target.eps, first=at == 0)
            for at in range(layers)
        )

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([self.read(tokens), features], -1)).to(features.dtype)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        return one_after_another(self.layers, x, positions, mask, past)

    def loss(self, taps: Taps) -> torch.Tensor:
        """EAGLE's: smooth L1 to the target's states, and 0.1 times the cross-entropy at a quarter of them."""
        hidden = with_uniform_noise(taps.hidden, taps.tokens) if self.training else taps.hidden
        positions = torch.arange(hidden.shape[1] - 1, device=hidden.device)
        predicted, _ = self.layer(self.joined(taps.tokens[:, 1:], hidden[:, :-1]), positions)
        rows = self.loss_rows(taps.tokens, predicted.shape[1])
        words = cross_entropy(taps.p[:, 1:][:, rows], self.words(predicted[:, rows]))
        return F.smooth_l1_loss(predicted, taps.hidden[:, 1:]) + TOKEN_WEIGHT * words
