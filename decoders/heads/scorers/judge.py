"""The judge of Judge Decoding (Bachmann et al., 2025): whether a drafted token is right, even if the target
would have written another one, predicted from the target's state after that token.

Its labels come from the tasks' checkers.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

UNASKED = -1  # label of places that are not scored


class Judge(nn.Module):
    """One linear layer. `settings`: the arguments that a file stores to build it again."""

    kind = "judge"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target):
        super().__init__()
        self.settings: dict = {}
        self.output = nn.Linear(target.width, 1)

    @torch.no_grad()
    def scores(self, hidden: torch.Tensor) -> torch.Tensor:
        """The probability [...] that the token before each state [..., d] is right, if right and wrong tokens
        were equally frequent, as in the weighted loss.
        """
        return self.output(hidden.to(self.output.weight.dtype)).float()[..., 0].sigmoid()

    def along(self, taps: Taps) -> torch.Tensor:
        """Its scores [B, T] after each token of known texts."""
        return self.scores(taps.hidden)

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """The loss of known texts. truth [B, T]: 0, 1 or UNASKED."""
        return self.loss_of(taps.hidden, truth)

    def loss_of(self, hidden: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy in nats after states [..., d], with equal weight for the mean of right and the
        mean of wrong tokens. truth [...]: 0, 1 or UNASKED.
        """
        logits = self.output(hidden).float()[..., 0]
        means = [
            F.binary_cross_entropy_with_logits(logits[truth == kind], logits.new_full((count,), float(kind)))
            for kind in (0, 1)
            if (count := int((truth == kind).sum()))
        ]
        return torch.stack(means).mean()
