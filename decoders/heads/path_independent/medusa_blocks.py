"""Medusa heads in the published form (Cai et al., 2024): residual SiLU blocks and a separate vocabulary
matrix for each depth. Our own, whose matrices differ from the target's by a low rank, are in medusa.py.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.feature_drafters.eagle3 import OUTSIDE
from decoders.heads.parts.layers import Entries
from decoders.heads.parts.module import DraftModule, Sees
from decoders.heads.parts.taps import Taps, Target


class MedusaBlocks(DraftModule):
    """`depth` heads of `blocks` blocks; `words`: rows of a vocabulary matrix, one for all heads if `shared`.
    `kept` [W]: the target's ids of these rows.
    """

    kind = "medusa"
    sees = Sees()

    def __init__(
        self, target: Target, depth: int, blocks: int, words: int, bias: bool = True, shared: bool = False
    ):
        super().__init__(target)
        self.depth, width = depth, target.width
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width, bias=bias) for _ in range(blocks)) for _ in range(depth)
        )
        count = 1 if shared else depth
        self.matrices = nn.ModuleList(nn.Linear(width, words, bias=False) for _ in range(count))
        self.register_buffer("kept", torch.arange(words))

    def head(self, k: int, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of head k (from 1) on states [..., d]; OUTSIDE for tokens without a row."""
        x = hidden
        for block in self.blocks[k - 1]:
            x = x + F.silu(block(x))
        own = self.matrices[min(k, len(self.matrices)) - 1](x)
        if own.shape[-1] == len(self.target.head):
            return own
        return own.new_full((*own.shape[:-1], len(self.target.head)), OUTSIDE).index_copy_(-1, self.kept, own)

    def begin(
        self,
        memory: Entries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V]."""
        return torch.stack([self.head(k, hidden[-1]) for k in range(1, self.depth + 1)])

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        rows = [max(0, taps.tokens.shape[1] - 1 - k) for k in range(1, min(depth, self.depth) + 1)]
        return [self.head(k, taps.hidden[:, :count]) for k, count in enumerate(rows, start=1)]
