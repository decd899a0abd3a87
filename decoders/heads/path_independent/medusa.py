"""Medusa heads (Cai et al., 2024): each depth has its own head, and all of them read only the last state.

Their guesses do not depend on the drafted path.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.engine.fast_product import Matrix
from decoders.heads.parts.fast_layers import Fast
from decoders.heads.parts.layers import Entries
from decoders.heads.parts.module import DraftModule, Sees, cross_entropy
from decoders.heads.parts.taps import Taps, Target

DECAY = 0.8  # head k has weight 0.8^k in the loss


class AllAtOnce:
    """All heads of a `Medusa` while drafting, with matrices of one kind stacked."""

    def __init__(self, medusa: "Medusa"):
        self.target = medusa.target
        self.inner = Matrix(*(block.weight.detach() for block in medusa.blocks))
        self.bias = torch.stack([block.bias.detach() for block in medusa.blocks])  # [K, d]
        self.narrow = torch.stack([part.weight.detach() for part in medusa.narrow])  # [K, rank, d]
        self.widen = torch.stack([part.detach() for part in medusa.widen])  # [K, V, rank]

    def block(self, hidden: torch.Tensor) -> torch.Tensor:
        """As `Medusa.block`."""
        x = hidden + F.silu(self.inner.times(hidden[None]).view_as(self.bias) + self.bias)  # [K, d]
        change = self.widen @ (self.narrow @ x[..., None])  # [K, V, 1]
        return self.target.logits(x) + change[..., 0]


class Medusa(DraftModule):
    """Head k: one residual SiLU block, then its own vocabulary matrix, the target's plus a learned low-rank
    change; with rank d it is as free as the paper's.

    Blocks and changes start at zero, so that every head starts by repeating the prediction of the next token.
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
        self.fast = Fast(AllAtOnce)

    def head(self, k: int, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of head k (from 1) on states [..., d]."""
        x = hidden + F.silu(self.blocks[k - 1](hidden))
        return self.target.logits(x) + F.linear(self.narrow[k - 1](x), self.widen[k - 1])

    def block(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [K, V] of all depths after the last known state [d]: the same on every path."""
        if (fast := self.fast.of(self, hidden)) is not None:
            return fast.block(hidden)
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
