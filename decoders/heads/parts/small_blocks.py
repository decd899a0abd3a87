"""Small parts that heads are made of: residual SiLU blocks, maps of low rank, layers with narrow attention.

All begin by changing nothing, so that a head begins as the target's own guess of the next token.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import DecoderLayer, LayerForm
from decoders.heads.parts.taps import Target

HEAD_SIZE = 32  # numbers per head of narrow attention


class LowRank(nn.Sequential):
    """A linear map `reads` -> `width` of that rank; it begins at zero."""

    def __init__(self, reads: int, rank: int, width: int, bias: bool = False):
        super().__init__(nn.Linear(reads, rank, bias=False), nn.Linear(rank, width, bias=bias))
        for parameter in self[1].parameters():
            nn.init.zeros_(parameter)


class ResidualBlock(nn.Module):
    """x + SiLU(W x + b), W of the given rank; 0: a full matrix."""

    def __init__(self, width: int, rank: int = 0):
        super().__init__()
        self.linear = LowRank(width, rank, width, bias=True) if rank else nn.Linear(width, width)
        if not rank:
            for parameter in self.linear.parameters():
                nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., d] -> [..., d]."""
        return x + F.silu(self.linear(x))


def narrow_layer(target: Target, heads: int, intermediate: int) -> DecoderLayer:
    """A decoder layer of the target's width with this many heads of attention and a feed-forward layer of
    that width; it begins by passing on what it reads.
    """
    size = min(HEAD_SIZE, target.width)
    form = LayerForm(heads, heads, size, target.theta)
    layer = DecoderLayer(target.width, heads, intermediate, target.theta, target.eps, form=form)
    for matrix in (layer.attention.out, layer.feed.down):
        nn.init.zeros_(matrix.weight)
    return layer


def normed(rows: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows of an embedding or vocabulary matrix [..., d] at the root mean square 1, as the target's states
    have it.
    """
    return F.rms_norm(rows, (rows.shape[-1],), eps=eps)
