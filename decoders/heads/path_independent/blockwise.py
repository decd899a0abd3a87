"""The heads of blockwise parallel decoding (Stern et al., 2018): one more layer after the decoder's output
computes all heads at once.

    z_i = z + part i of W_2 ReLU(W_1 z + b_1) + b_2;   logits of head i = W_lm z_i

The paper's head 1 predicts the next token; here that is the target itself, so head 1 + k predicts depth k.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Entries
from decoders.heads.parts.module import DraftModule, Sees, cross_entropy, seeded
from decoders.heads.parts.taps import Taps, Target


class Blockwise(DraftModule):
    """`depth` heads; inner: hidden width per head."""

    kind = "blockwise"
    sees = Sees()

    def __init__(self, target: Target, depth: int = 4, inner: int = 48):
        super().__init__(target, depth=depth, inner=inner)
        self.depth, width = depth, target.width
        self.hidden, self.out = nn.Linear(width, depth * inner), nn.Linear(depth * inner, depth * width)
        for parameter in self.out.parameters():
            nn.init.zeros_(parameter)

    def states(self, z: torch.Tensor) -> torch.Tensor:
        """z_i of all heads [..., K, d] from the decoder's output [..., d]."""
        return z[..., None, :] + self.out(F.relu(self.hidden(z))).unflatten(-1, (self.depth, -1))

    def loss(self, taps: Taps) -> torch.Tensor:
        """Cross-entropy under the target's distribution: in training that of one head, drawn for each batch
        (section 6), else the mean over all heads.
        """
        heads = range(1, self.depth + 1)
        if self.training:
            heads = [1 + int(torch.randint(self.depth, (), generator=seeded(taps.tokens)))]
        states = self.states(taps.hidden)
        losses = [cross_entropy(taps.p[:, k:], self.target.logits(states[:, :-k, k - 1])) for k in heads]
        return sum(losses) / len(losses)

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        states, deepest = self.states(taps.hidden), min(depth, self.depth)
        return [self.target.logits(states[:, : taps.rows(k), k - 1]) for k in range(1, deepest + 1)]

    def begin(
        self,
        memory: Entries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V]."""
        return self.target.logits(self.states(hidden[-1]))
