"""Medusa heads (Cai et al., 2024): each depth has its own head, and all of them see the last state only.

Knows nothing of trees: its guesses do not depend on the drafted path.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Entries
from decoders.heads.parts.module import DraftModule, Sees, cross_entropy
from decoders.heads.parts.taps import Taps, Target

DECAY = 0.8  # head k weighs 0.8^k in the loss


class Medusa(DraftModule):
    """Head k: one residual SiLU block, then a vocabulary matrix of its own, which is the target's and a
    learned change of low rank; a rank of d leaves it as free as the paper's.

    With blocks and changes at zero, every head starts as "say the next token once more".
    """

    kind = "medusa"
    sees = Sees()
    rates = (6e-3, 1e-3)

    def __init__(self, target: Target, depth: int = 4, rank: int = 64):
        super().__init__(target, depth=depth, rank=rank)
        self.depth = depth
        width, words = target.width, len(target.head)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        for parameter in self.blocks.parameters():
            nn.init.zeros_(parameter)
        self.narrow = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(depth))
        self.widen = nn.ParameterList(torch.zeros(words, rank) for _ in range(depth))

    def head(self, k: int, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of head k (from 1) on states [..., d]."""
        x = hidden + F.silu(self.blocks[k - 1](hidden))
        return self.target.logits(x) + F.linear(self.narrow[k - 1](x), self.widen[k - 1])

    def block(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [K, V] of all depths after the last known state [d]: the same on every path."""
        return torch.stack([self.head(k, hidden) for k in range(1, len(self.blocks) + 1)])

    def begin(self, memory: Entries, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V]."""
        return self.block(hidden[-1])

    def loss(self, taps: Taps) -> torch.Tensor:
        """Sum over the heads of 0.8^k times the cross-entropy under the target's own distribution there."""
        return sum(
            DECAY**k * cross_entropy(taps.p[:, k:], self.head(k, taps.hidden[:, :-k]))
            for k in range(1, len(self.blocks) + 1)
        )

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        deepest = min(depth, len(self.blocks))
        return [self.head(k, taps.hidden[:, : taps.rows(k)]) for k in range(1, deepest + 1)]
