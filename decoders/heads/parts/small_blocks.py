"""Small building blocks of heads: residual SiLU blocks, low-rank maps, layers with narrow attention.

All are initialised to the identity or to zero, so that a head starts as the target's own prediction of the
next token.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import DecoderLayer, LayerForm
from decoders.heads.parts.taps import Target

HEAD_SIZE = 32  # numbers per head of narrow attention


class LowRank(nn.Sequential):
    """A linear map `reads` -> `width` of rank `rank`, initialised to zero."""

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
    """A decoder layer of the target's width with `heads` attention heads of HEAD_SIZE and a feed-forward
    layer of width `intermediate`, initialised to the identity.
    """
    size = min(HEAD_SIZE, target.width)
    form = LayerForm(heads, heads, size, target.theta)
    layer = DecoderLayer(target.width, heads, intermediate, target.theta, target.eps, form=form)
    for matrix in (layer.attention.out, layer.feed.down):
        nn.init.zeros_(matrix.weight)
    return layer


def normed(rows: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows of an embedding or vocabulary matrix [..., d] scaled to root mean square 1, like the target's
    states.
    """
    return F.rms_norm(rows, (rows.shape[-1],), eps=eps)
