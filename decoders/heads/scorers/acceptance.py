"""The acceptance head of SpecDec++ (Huang et al., 2024): how likely the target is to accept a drafted token,
read from the draft model's state after that token.

It belongs to a pair of models: it reads the draft and predicts the target. Trained on min(1, p/q) of tokens
that the draft sampled.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

UNASKED = -1.0  # label of places that are not scored
REFUSED_WEIGHT = 6.0  # weight of rejections in the loss; that of acceptances is 1


class Acceptance(nn.Module):
    """Blocks h + SiLU(W h + b), then two logits: rejected, accepted. `settings`: the arguments that a file
    stores to build it again; `against`: the name of the target whose acceptance it predicts.
    """

    kind = "acceptance"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, blocks: int = 3, shared: bool = True, against: str = ""):
        """shared: whether one block runs `blocks` times, as in the authors' code, or each has its own
        weights.
        """
        super().__init__()
        self.settings = {"blocks": blocks, "shared": shared, "against": against}
        own = [nn.Linear(target.width, target.width) for _ in range(1 if shared else blocks)]
        self.blocks = nn.ModuleList(own)
        self.output = nn.Linear(target.width, 2)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., 2] of rejection and acceptance after states [..., d], as trained with the weighted
        loss.
        """
        for at in range(self.settings["blocks"]):
            hidden = hidden + F.silu(self.blocks[at % len(self.blocks)](hidden))
        return self.output(hidden)

    @torch.no_grad()
    def scores(self, hidden: torch.Tensor) -> torch.Tensor:
        """The probability [...] that the token before each state [..., d] is accepted.

        The loss weights rejections by REFUSED_WEIGHT, which lowers the log-odds of acceptance by its
        logarithm; adding it back gives a probability.
        """
        refused, accepted = self(hidden.to(self.output.weight.dtype)).float().unbind(-1)
        return (accepted - refused + math.log(REFUSED_WEIGHT)).sigmoid()

    def along(self, taps: Taps) -> torch.Tensor:
        """Its scores [B, T] after each token of known texts."""
        return self.scores(taps.hidden)

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """Soft cross-entropy in nats with rejections weighted, normalised by the sum of weights. truth [B,
        T]: min(1, p/q), or UNASKED.
        """
        asked = truth >= 0
        logprobs, wanted = self(taps.hidden).float()[asked].log_softmax(-1), truth[asked].float()
        refused = REFUSED_WEIGHT * (1.0 - wanted)
        return -(refused * logprobs[:, 0] + wanted * logprobs[:, 1]).sum() / (refused + wanted).sum()
