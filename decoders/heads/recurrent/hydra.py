"""Hydra heads (Ankner et al., 2024): Medusa's heads, but each also reads the tokens drafted above it.

    head k reads v = [h_n; E(root); E(c_1); ...; E(c_{k-1})] -> A v + SiLU(B v), then residual blocks

Hydra++ has deeper heads, and a decoder layer over all states whose output replaces h_n (prefix attention).
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Past
from decoders.heads.parts.module import ALL, Sees
from decoders.heads.parts.small_blocks import ResidualBlock, narrow_layer, normed
from decoders.heads.parts.taps import Target
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads


class FirstBlock(nn.Module):
    """A v + SiLU(B v + b), where A passes on the state and adds a low-rank map of v; A and B share the
    projection of v to `rank` dimensions.
    """

    def __init__(self, width: int, parts: int, rank: int):
        super().__init__()
        self.narrow = nn.Linear(parts * width, rank, bias=False)
        self.a, self.b = nn.Linear(rank, width, bias=False), nn.Linear(rank, width)
        for parameter in (*self.a.parameters(), *self.b.parameters()):
            nn.init.zeros_(parameter)

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        """v [..., (k + 1) d] -> [..., d]."""
        inner = self.narrow(v)
        return v[..., : self.a.out_features] + self.a(inner) + F.silu(self.b(inner))


class Hydra(RecurrentHeads):
    """`depth` heads of `blocks` blocks each, with the target's vocabulary matrix and its embeddings,
    normed.
    """

    kind = "hydra"
    decay = 0.8

    def __init__(self, target: Target, depth: int = 4, rank: int = 48, blocks: int = 1, **settings: Any):
        super().__init__(target, depth=depth, rank=rank, blocks=blocks, **settings)
        self.depth, width = depth, target.width
        self.first = nn.ModuleList(FirstBlock(width, k + 1, rank) for k in range(1, depth + 1))
        self.blocks = nn.ModuleList(
            nn.Sequential(*(ResidualBlock(width, rank) for _ in range(blocks - 1))) for _ in range(depth)
        )

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        """The state is the input of head k: [..., (k + 1) d]."""
        token = normed(self.target.read(tokens), self.target.eps)
        return torch.cat([state, token.to(state.dtype)], -1)

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        return self.target.logits(self.blocks[k - 1](self.first[k - 1](state)))


class HydraPlus(Hydra):
    """Hydra++: `blocks` blocks per head, and a prefix layer with `heads` attention heads."""

    kind = "hydra_plus"
    sees = Sees(ALL, root=True, path=True)

    def __init__(
        self,
        target: Target,
        depth: int = 4,
        rank: int = 32,
        blocks: int = 4,
        heads: int = 2,
        intermediate: int = 64,
    ):
        super().__init__(target, depth, rank, blocks, heads=heads, intermediate=intermediate)
        self.prefix = narrow_layer(target, heads, intermediate)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        return self.prefix(x, positions, mask, past)
