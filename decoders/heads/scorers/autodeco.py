"""The heads of AutoDeco (Wang et al., 2025): temperature and top-p for the next token, predicted from the
target's state before it.

Trained without labels, by the next token's cross-entropy through a smooth top-p.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

HIGHEST = 2.0  # temperatures are between 0 and this
COLDEST = 0.01  # smallest divisor of logits
STEEP = 30.0  # decay rate of tokens beyond P in the smooth top-p
DROPPED = 0.6  # share of places with a correct top-1 token that are dropped from the temperature loss
TOP = 5  # the second head reads the total probability of this many most likely tokens
READ = 5  # inputs of the second head besides the state: T, max p, entropy, variance, top mass


@dataclass(frozen=True)
class Published:
    """`read`: inputs of the second head besides the state, T and `statistics(logits [N, V], T [N])`; which of
    the two heads were trained.
    """

    read: int
    statistics: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    temperature: bool = True
    top_p: bool = True


class AutoDeco(nn.Module):
    """Two networks with one hidden layer each: state -> T, and state with statistics of the row at T -> P.
    `settings`: the arguments that a file stores to build it again.
    """

    kind = "autodeco"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, width: int = 256, published: "Published | None" = None):
        """published: how heads of the authors differ."""
        super().__init__()
        self.target, self.settings = target, {"width": width}
        own = published or Published(READ, lambda logits, t: statistics(at_temperature(logits, t)))
        self.statistics, self.trained = own.statistics, (own.temperature, own.top_p)
        self.temperature = network(target.width, width)
        self.top_p = network(target.width + own.read, width)

    def forward(self, hidden: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(T, P), each [N], for the next token: hidden [N, d], logits [N, V]."""
        t = HIGHEST * self.temperature(hidden)[..., 0].float().sigmoid()
        with torch.no_grad():
            seen = torch.cat([t[:, None], self.statistics(logits, t)], -1)
        p = self.top_p(torch.cat([hidden, seen.to(hidden.dtype)], -1))[..., 0].float().sigmoid()
        return t, p

    @torch.no_grad()
    def scores(self, hidden: torch.Tensor, logits: torch.Tensor) -> tuple[float | None, float | None]:
        """(T, P) for one token: hidden [d], logits [V]; None of a head that was not trained."""
        t, p = self(hidden[None].to(self.temperature[0].weight.dtype), logits[None])
        said = max(COLDEST, float(t[0])), float(p[0])
        return tuple(value if trained else None for value, trained in zip(said, self.trained, strict=True))

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """P [B, T] after each token of known texts; it depends on both heads, since the second reads T."""
        _, p = self(taps.hidden.flatten(0, 1), taps.logits.flatten(0, 1))
        return p.view(taps.tokens.shape)

    def loss(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The loss of both heads in nats per token: hidden [N, d], and the tokens [N] that came next."""
        with torch.autocast(hidden.device.type, enabled=False):
            logits = self.target.logits(hidden)
            t, p = self(hidden, logits)
            kept = taught(logits, tokens, self.training)
            return temperature_loss(logits, t, tokens, kept) + top_p_loss(logits, t, p, tokens)


def network(read: int, width: int) -> nn.Sequential:
    """One hidden layer, one number."""
    return nn.Sequential(nn.Linear(read, width), nn.ReLU(), nn.Linear(width, 1))


def at_temperature(logits: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """Probabilities [N, V] of logits [N, V] at temperatures [N]."""
    return (logits.float() / t[:, None].clamp(min=COLDEST)).softmax(-1)


def statistics(p: torch.Tensor) -> torch.Tensor:
    """Statistics [N, 4] of probabilities [N, V]: the largest, the entropy in nats, the variance times V, the
    sum of the TOP largest.
    """
    top = p.topk(min(TOP, p.shape[-1]), dim=-1).values
    entropy = -(p * p.clamp(min=1e-30).log()).sum(-1)
    variance = p.var(-1, correction=0) * p.shape[-1]
    return torch.stack([top[:, 0], entropy, variance, top.sum(-1)], -1)


def taught(logits: torch.Tensor, tokens: torch.Tensor, at_random: bool) -> torch.Tensor:
    """The weight of each place [N] in the temperature loss: 1, except where the most likely token is right;
    there 0 with probability DROPPED if `at_random`, else 1 - DROPPED.
    """
    right = logits.argmax(-1) == tokens
    kept = torch.rand(len(tokens), device=logits.device) >= DROPPED if at_random else 1.0 - DROPPED
    return torch.where(right, torch.as_tensor(kept, dtype=torch.float32), 1.0)


def weights(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The model's own probability [N] of each token, so that unlikely tokens have little weight."""
    return logits.float().softmax(-1).gather(-1, tokens[:, None])[:, 0]


def temperature_loss(
    logits: torch.Tensor, t: torch.Tensor, tokens: torch.Tensor, kept: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy in nats of tokens [N] under logits [N, V] at temperatures t [N], weighted by the model's
    own probabilities and by `kept` [N].
    """
    lost = F.cross_entropy(logits.float() / t[:, None].clamp(min=COLDEST), tokens, reduction="none")
    counted = weights(logits, tokens) * kept
    return (counted * lost).sum() / counted.sum().clamp(min=1e-9)


def smooth_top_p(q: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """Rows q [N, V] after a differentiable top-p with p [N]: each token is multiplied by exp(-30 max(0, c -
    p)), with c the cumulative probability up to and including it. Unlike the hard top-p, it also reduces the
    token that crosses p.
    """
    ordered, order = q.sort(dim=-1, descending=True, stable=True)
    faded = ordered * (-STEEP * (ordered.cumsum(-1) - p[:, None]).clamp(min=0.0)).exp()
    faded = faded / (faded.sum(-1, keepdim=True) + 1e-9)
    return torch.zeros_like(faded).scatter(-1, order, faded)


def top_p_loss(logits: torch.Tensor, t: torch.Tensor, p: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """-log of the probability of tokens [N] after the smooth top-p, in nats, weighted by the model's own
    probabilities. Gradients reach p [N] and t [N].
    """
    left = smooth_top_p(at_temperature(logits, t), p).gather(-1, tokens[:, None])[:, 0]
    counted = weights(logits, tokens)
    return (counted * -(left + 1e-9).log()).sum() / counted.sum()
