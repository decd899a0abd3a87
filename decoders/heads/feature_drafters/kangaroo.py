"""The adapter of Kangaroo (Liu et al., 2024): an early exit trained to imitate the last layer.

It reads the target's states after a few layers. A drafted node must have run through those layers before it
can be expanded; verification continues from there.
"""

import torch
from torch import nn

from decoders.heads.parts.layers import Attention, Entries, Past
from decoders.heads.parts.module import ALL, DraftModule, Sees, cross_entropy
from decoders.heads.parts.taps import Taps, Target
from decoders.refusal import Refusal


class Kangaroo(DraftModule):
    """Norm, attention, residual, norm, and the target's head, on the states after `exit` layers.

    Its attention's output starts at zero and its last norm as the target's, so that it starts as the plain
    exit.
    """

    kind = "kangaroo"
    sees = Sees(ALL, root=True, path=True, first=True)

    def __init__(self, target: Target, exit: int = 3):
        super().__init__(target, exit=exit)
        if not 0 < exit < target.layers:
            raise Refusal(f"The exit must lie after 1 to {target.layers - 1} layers, not {exit}.")
        self.reads = (exit,)
        self.norm = nn.RMSNorm(target.width, target.eps)
        self.attention = Attention(target.width, target.heads, target.theta)
        self.last_norm = nn.RMSNorm(target.width, target.eps)
        nn.init.zeros_(self.attention.out.weight)
        with torch.no_grad():
            self.last_norm.weight.copy_(target.last_norm)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """The adapter on states [B, N, d]; as `Attention.forward`."""
        mixed, past = self.attention(self.norm(x), positions, mask, past)
        return self.last_norm(x + mixed), past

    def all_logits(self, taps: Taps) -> torch.Tensor:
        """Logits [B, T, V]: row n predicts token n + 1 from the tokens up to n."""
        states = taps.states[self.settings["exit"]]
        return self.target.logits(self.layer(states, torch.arange(states.shape[1], device=states.device))[0])

    def loss(self, taps: Taps) -> torch.Tensor:
        """Cross-entropy under the target's distributions at the same places."""
        return cross_entropy(taps.p, self.all_logits(taps))

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`. All depths read the drafted tokens, so they have the same guesses,
        shifted.
        """
        logits = self.all_logits(taps)
        return [logits[:, k:-1] for k in range(1, depth + 1)]

    def begin(self, entries: Entries, states: torch.Tensor) -> torch.Tensor:
        """Logits [V] of depth 1; drops what was drafted before. states [M, d]: after `exit` layers, of newly
        read tokens up to the root.
        """
        return self.target.logits(entries.know(self.layer, states))

    def expand(self, entries: Entries, parents: list[int], states: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] below new nodes with states [N, d] after the nodes `parents` (0: the root)."""
        return self.target.logits(entries.draft(self.layer, states, parents))
