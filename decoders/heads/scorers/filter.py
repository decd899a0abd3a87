"""The filter of Learn2PD (2025): which positions of a block already hold their final token, predicted from
the confidences of the whole block. Trained on how texts were filled.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

UNASKED = -1  # label of places that are not scored


class Filter(nn.Module):
    """Two linear layers of a block's width with a ReLU between them. `settings`: the arguments that a file
    stores to build it again.
    """

    kind = "filter"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, block: int = 32):
        super().__init__()
        self.settings = {"block": block}
        self.block = block
        self.inner, self.output = nn.Linear(block, block), nn.Linear(block, block)

    def forward(self, confidences: torch.Tensor) -> torch.Tensor:
        """Logits [..., n] for n positions, at most a block, from the probabilities [..., n] of their most
        likely tokens. Shorter blocks are padded with zeros.
        """
        count = confidences.shape[-1]
        padded = F.pad(confidences.to(self.inner.weight.dtype), (0, self.block - count))
        return self.output(F.relu(self.inner(padded)))[..., :count]

    @torch.no_grad()
    def scores(self, confidences: torch.Tensor) -> torch.Tensor:
        """Probabilities [..., n] that each position holds its final token."""
        return self(confidences).double().sigmoid()

    def along(self, taps: Taps) -> torch.Tensor:
        """Its scores [B, T] at each place of known texts, read block by block."""
        confidences = taps.p.max(-1).values
        return torch.cat([self.scores(some) for some in confidences.split(self.block, dim=-1)], -1).float()

    def loss(self, confidences: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy in nats of blocks [N, n]. truth [N, n]: 0, 1 or UNASKED."""
        asked = truth != UNASKED
        return F.binary_cross_entropy_with_logits(self(confidences)[asked].float(), truth[asked].float())
