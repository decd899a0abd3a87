"""The ranker of RankGen (Krishna et al., 2022): how well a continuation fits the text before it.

The paper trains an encoder with a token `pre` or `suf` in front of its input. Here two small networks, one
for prefixes and one for continuations, read the frozen target's states instead. As in the paper, each text is
read by itself, from its own start.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target


class Ranker(nn.Module):
    """Two networks with one hidden layer. A score is the dot product of two vectors, which are not
    normalised. `settings`: the arguments that a file stores to build it again.
    """

    kind = "ranker"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, inner: int = 64, width: int = 64, dropout: float = 0.2):
        super().__init__()
        self.settings = {"inner": inner, "width": width}
        self.pre, self.suf = (
            nn.Sequential(
                nn.LayerNorm(2 * target.width),
                nn.Dropout(dropout),
                nn.Linear(2 * target.width, inner),
                nn.GELU(),
                nn.Dropout(dropout),
                nn.Linear(inner, width),
            )
            for _ in range(2)
        )

    @torch.no_grad()
    def vector(self, states: torch.Tensor, prefix: bool) -> torch.Tensor:
        """Vector [w] of a text with the target's last states [T, d], as a prefix or as a continuation."""
        read = summary(states, torch.tensor([len(states)], device=states.device))[0]
        network = self.pre if prefix else self.suf
        return network(read.to(network[-1].weight.dtype)).float()

    def loss(self, prefixes: torch.Tensor, written: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """Section 2: cross-entropy in nats of identifying each prefix's own continuation among those of the
        batch and texts that the target sampled. All three are outputs of `summary` [B, 2d].
        """
        scores = self.pre(prefixes) @ self.suf(torch.cat([written, drawn])).T  # [B, 2B]
        return F.cross_entropy(scores.float(), torch.arange(len(prefixes), device=scores.device))

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The sigmoid of the score [B, T] of each prefix of known texts as its own continuation."""
        count = taps.hidden.shape[1]
        means = taps.hidden.cumsum(1) / torch.arange(1, count + 1, device=taps.hidden.device)[:, None]
        read = torch.cat([means, taps.hidden], -1).to(self.pre[-1].weight.dtype)
        return (self.pre(read) * self.suf(read)).float().sum(-1).sigmoid()


def summary(hidden: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The networks' input [B, 2d] for texts: the mean of their first `ends` [B] states, and the last of
    these.

    hidden [B, T, d], or [T, d] of one text.
    """
    hidden = hidden.view(-1, *hidden.shape[-2:])
    inside = torch.arange(hidden.shape[1], device=hidden.device) < ends[:, None]
    means = (hidden * inside[..., None]).sum(1) / ends[:, None]
    last = hidden[torch.arange(len(hidden), device=hidden.device), ends - 1]
    return torch.cat([means, last], -1)
