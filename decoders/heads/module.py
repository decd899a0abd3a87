"""What every draft module is: a small network beside a frozen target that guesses tokens beyond the next one.

A module brings its loss, its guesses along a known text (to train towards and to measure), and its guesses
while decoding: `block` if they do not depend on the drafted path, `begin` and `expand` if they do. Modules
hold weights only; what one lane has drafted lives in its `Entries`.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.taps import Taps, Target


class DraftModule(nn.Module):
    """Base of all modules. `settings` is what a file keeps to build it again; `reads` the layers it taps."""

    kind: str
    reads: tuple[int, ...] = ()
    rates = (6e-3, 3e-3)  # learning rates of Muon (inner matrices) and AdamW (the rest)

    def __init__(self, target: Target, **settings):
        super().__init__()
        self.target, self.settings = target, settings  # `target` is no nn.Module, so it is not saved

    def loss(self, taps: Taps) -> torch.Tensor:
        """The training loss on one batch, a scalar."""
        raise NotImplementedError

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """Guesses of depths 1 to `depth` at each place of known texts [B, T], the path above being right.

        Item k - 1 is [B, T - 1 - k, V]: its row n guesses token n + 1 + k, having read the target's states up
        to token n and, if the module is path-dependent, tokens up to n + k.
        """
        raise NotImplementedError


def cross_entropy(p: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of `logits` [..., V] under the distributions p [..., V]."""
    return F.cross_entropy(logits.flatten(0, -2).float(), p.flatten(0, -2))
