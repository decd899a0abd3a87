"""Reward heads: how good a text is so far, read from the frozen target's last state after each token.

Three questions, each with its own number between 0 and 1: is every step so far right, can this beginning
still become right, is the whole text right. Knows states; the truth it learned from is the tasks' checkers.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.taps import Taps, Target

QUESTIONS = ("steps", "prefix", "outcome")


class Reward(nn.Module):
    """One small network for all questions. `settings` is what a file keeps to build it again."""

    kind = "reward"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, width: int = 64):
        super().__init__()
        self.settings = {"width": width}
        self.norm = nn.LayerNorm(target.width)
        self.inner = nn.Linear(target.width, width)
        self.said = nn.Linear(width, len(QUESTIONS))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., 3] of the questions after states [..., d]."""
        return self.said(F.gelu(self.inner(self.norm(hidden))))

    @torch.no_grad()
    def scores(self, hidden: torch.Tensor) -> dict[str, torch.Tensor]:
        """question -> probability [...] after each state [..., d] (see `take_taps`).

        `steps` is meant for the end of a line, `prefix` for any token of an answer, `outcome` for its end.
        """
        dtype = self.inner.weight.dtype
        return dict(zip(QUESTIONS, self(hidden.to(dtype)).float().sigmoid().unbind(-1), strict=True))

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy in nats: the mean over the questions of the mean over their places. truth
        [B, T, 3]: 0, 1, or -1 where a question is not asked.
        """
        logits = self(taps.hidden).float()
        losses = []
        for at in range(len(QUESTIONS)):
            asked = truth[..., at] >= 0
            if asked.any():
                wanted = truth[..., at][asked].float()
                losses.append(F.binary_cross_entropy_with_logits(logits[..., at][asked], wanted))
        return torch.stack(losses).mean()
