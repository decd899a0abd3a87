"""The recurrent drafter (Zhang et al., 2024): one small recurrent network for all depths, together with the
target's newest state.

    s_0 = 0;   s_j = SiLU(W E(g_{j-1}) + b + U s_{j-1});   logits_j = head [h_n; s_j]

g_0 is the root. The head has two residual SiLU blocks of width 2d; all weights are shared over depths.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.small_blocks import ResidualBlock, normed
from decoders.heads.parts.taps import Target
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads


class ReDrafter(RecurrentHeads):
    """rank: of the blocks' matrices. The vocabulary matrix on 2d is a map to d followed by the target's."""

    kind = "redrafter"
    steps = 5

    def __init__(self, target: Target, rank: int = 64, blocks: int = 2):
        super().__init__(target, rank=rank, blocks=blocks)
        width = target.width
        self.read, self.recur = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.blocks = nn.Sequential(*(ResidualBlock(2 * width, rank) for _ in range(blocks)))
        self.out = nn.Linear(2 * width, width, bias=False)
        with torch.no_grad():  # the newest state alone
            self.out.weight.copy_(torch.eye(width, 2 * width))

    def start(self, summary: torch.Tensor) -> torch.Tensor:
        """[h_n; 0]: the state is the head's input."""
        return torch.cat([summary, torch.zeros_like(summary)], -1)

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        hidden, before = state.chunk(2, -1)
        token = normed(self.target.read(tokens), self.target.eps)
        updated = F.silu(self.read(token) + self.recur(before))
        return torch.cat([hidden.to(updated.dtype), updated], -1)

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        return self.target.logits(self.out(self.blocks(state)))
