"""Hydra heads in the published form (Ankner et al., 2024): full matrices with biases and a vocabulary matrix
for each head; Hydra++ with its prefix layer. Our own, of low rank and with the target's matrix, are in
hydra.py.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import DecoderLayer, LayerForm, Past
from decoders.heads.parts.module import ALL, NEWEST, Sees
from decoders.heads.parts.taps import Target
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads


class HydraBlocks(RecurrentHeads):
    """`depth` heads: A v + SiLU(B v), then `blocks - 1` blocks x + SiLU(W x), then a vocabulary matrix with
    bias. prefix: (form, inner width) of the layer whose output, normed, replaces the state.
    """

    kind = "hydra"

    def __init__(self, target: Target, depth: int, blocks: int, prefix: tuple[LayerForm, int] | None = None):
        super().__init__(target)
        self.depth, width, words = depth, target.width, len(target.head)
        self.sees = Sees(NEWEST if prefix is None else ALL, root=True, path=True)
        reads = [(k + 1) * width for k in range(1, depth + 1)]
        self.a, self.b = (nn.ModuleList(nn.Linear(size, width) for size in reads) for _ in range(2))
        self.deeper = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width) for _ in range(blocks - 1)) for _ in range(depth)
        )
        self.matrices = nn.ModuleList(nn.Linear(width, words) for _ in range(depth))
        self.prefix = None
        if prefix is not None:
            form, inner = prefix
            self.prefix = DecoderLayer(width, target.heads, inner, target.theta, target.eps, form=form)
            self.last_norm = nn.RMSNorm(width, target.eps)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        x, past = self.prefix(x, positions, mask, past)
        return self.last_norm(x), past

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        """The state is the input of head k: [..., (k + 1) d]."""
        return torch.cat([state, self.target.read(tokens).to(state.dtype)], -1)

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        x = self.a[k - 1](state) + F.silu(self.b[k - 1](state))
        for block in self.deeper[k - 1]:
            x = x + F.silu(block(x))
        return self.matrices[k - 1](x)
