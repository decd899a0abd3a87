"""The draft model of GliDe (Du et al., 2024): one small layer that also attends to the target's own KV cache.

Between self-attention and MLP is a cross-attention that learns only queries and output: its keys and values
are those that the target's last layer caches for verified tokens.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.cross_attention.cross_attention import (
    CrossAttention,
    CrossAttentionDrafter,
    Remembered,
    keys_and_values,
)
from decoders.heads.parts.layers import Attention, FeedForward, Past
from decoders.heads.parts.taps import Taps, Target

BLOCK = 5  # tokens per block of the training mask


def block_mask(length: int, size: int = BLOCK) -> torch.Tensor:
    """The training mask [T, T]: each token sees the target's tokens of earlier blocks of `size`; in the first
    block, up to itself. While drafting, the target's cache lags behind in the same way.
    """
    places = torch.arange(length)
    seen = torch.where(places < size, places + 1, places // size * size)
    return places[None] < seen[:, None]


class Glide(CrossAttentionDrafter):
    """Norm and self-attention, norm and cross-attention, norm and MLP, each with a residual; the target's
    embeddings, last norm and head are shared.
    """

    kind = "glide"
    rates = (6e-3, 1e-3)

    def __init__(self, target: Target, intermediate: int = 512):
        super().__init__(target, intermediate=intermediate)
        width = target.width
        self.reads = (target.layers - 1,)
        self.attention = Attention(width, target.heads, target.theta)
        self.cross = CrossAttention(width, target.heads, target.theta)
        self.feed = FeedForward(width, intermediate)
        self.norms = nn.ModuleList(nn.RMSNorm(width, target.eps) for _ in range(4))
        with torch.no_grad():
            self.norms[3].weight.copy_(target.last_norm)

    def remember(self, hidden: torch.Tensor, states: dict[int, torch.Tensor], first: int) -> Remembered:
        """Keys and values [B, M, H, D] of the target's last layer."""
        last = self.target.layers - 1
        return keys_and_values(self.target.model, last, states[last], first)

    def run(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
        remembered: Remembered,
        sees: torch.Tensor,
    ) -> tuple[torch.Tensor, Past]:
        """As `CrossAttentionDrafter.run`."""
        mixed, past = self.attention(self.norms[0](x), positions, mask, past)
        x = x + mixed
        keys, values = (part.transpose(1, 2) for part in remembered)  # [B, H, M, D]
        x = x + self.cross(self.norms[1](x), positions + 1, keys, values, sees)
        return self.norms[3](x + self.feed(self.norms[2](x))), past

    def loss(self, taps: Taps) -> torch.Tensor:
        """Cross-entropy of the texts' own tokens, under the block mask."""
        length = taps.tokens.shape[1]
        remembered = self.remember(taps.hidden, taps.states, 0)
        sees = block_mask(length)[1:].to(taps.tokens.device)
        positions = torch.arange(length - 1, device=taps.tokens.device)
        states, _ = self.run(self.target.read(taps.tokens[:, 1:]), positions, None, None, remembered, sees)
        rows = self.loss_rows(taps.tokens, length - 2)
        logits = self.target.logits(states[:, rows]).float()
        return F.cross_entropy(logits.flatten(0, 1), taps.tokens[:, rows + 2].flatten())
