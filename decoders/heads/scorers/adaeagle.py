"""The length predictor of AdaEAGLE (Zhang et al., 2024): how many tokens of a draft will be accepted,
predicted before anything is drafted, from the newest token and the target's state before it.

Trained on the accepted lengths of EAGLE's chains along the target's greedy texts.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

UNASKED = -1  # label of places that are not scored
BLOCKS = 3
UNDER = 2.0  # weight of underestimates in the loss; that of overestimates is 1


class AdaEagle(nn.Module):
    """A linear map from token and state to `width`, three residual SiLU blocks, one number. `settings`: the
    arguments that a file stores to build it again; `most`: the longest chain in its training.
    """

    kind = "adaeagle"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, width: int = 128, most: int = 6):
        super().__init__()
        self.target, self.settings = target, {"width": width, "most": most}
        self.inner = nn.Linear(2 * target.width, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(BLOCKS))
        self.output = nn.Linear(width, 1)

    def forward(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The expected length [...] after tokens [...] with the target's states [..., d] before them;
        embeddings and states are scaled to root mean square 1.
        """
        parts = [F.rms_norm(part.float(), part.shape[-1:]) for part in (self.target.read(tokens), hidden)]
        x = self.inner(torch.cat(parts, -1).to(self.inner.weight.dtype))
        for block in self.blocks:
            x = x + F.silu(block(x))
        return self.output(x).float()[..., 0]

    @torch.no_grad()
    def length(self, hidden: torch.Tensor, token: int) -> float:
        """The expected length of a chain after one token."""
        return float(self(hidden, torch.tensor(token, device=hidden.device)))

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The expected lengths [B, T - 1] after tokens 1 to T - 1 of known texts."""
        return self(taps.hidden[:, :-1], taps.tokens[:, 1:])

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """Mean absolute error, with underestimates weighted by UNDER. truth [B, T]: row n holds the length
        after token n + 1, or UNASKED.
        """
        predicted, truth = self(taps.hidden[:, :-1], taps.tokens[:, 1:]), truth[:, :-1]
        apart = (predicted - truth)[truth != UNASKED]
        return torch.where(apart < 0, -UNDER * apart, apart).mean()


def accepted_lengths(guesses: list[torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """How many consecutive top-1 guesses after each row's root agree with texts [B, T]: [B, T], UNASKED where
    the text ends too early. guesses: as from `DraftModule.along`; after each root, the texts must be the
    target's greedy ones.
    """
    rows = guesses[-1].shape[1]
    right = [
        logits[:, :rows].argmax(-1) == tokens[:, 1 + k : 1 + k + rows] for k, logits in enumerate(guesses, 1)
    ]
    lengths = torch.stack(right, -1).int().cumprod(-1).sum(-1)
    return F.pad(lengths, (0, tokens.shape[1] - rows), value=UNASKED)
