"""Adaptive weighted rejection sampling of one token: draw, check, and draw again from what is left.

Lipkin et al. (2025). The token has the model's probabilities among allowed tokens; the draws on the way give
an unbiased estimate of the mass Z of all allowed tokens. Knows a row of probabilities and a check of single
tokens, no lane.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

Check = Callable[[int], bool]
Draw = Callable[[torch.Tensor, int], int]  # (weights [V], number of this draw) -> token
Phantoms = Callable[[float, int], int]  # (mass left, number of the draw) -> failures before a success


@dataclass
class Outcome:
    """The token, None where none was allowed; the estimate of Z; and what was drawn: (token, its probability,
    allowed), in order. What stands after the token was drawn for the estimate alone.
    """

    token: int | None = None
    estimate: float = 0.0
    drawn: list[tuple[int, float, bool]] = field(default_factory=list)


class Sampler:
    """Draws without replacement: a rejected token leaves the row."""

    def __init__(self, p: torch.Tensor, allows: Check, draw: Draw):
        """p [V]: probabilities in float64."""
        self.left, self.allows, self.draw = p.clone(), allows, draw
        self.rejects, self.outcome = 0, Outcome()

    def next(self) -> tuple[int, float, bool] | None:
        """(token, probability, allowed) of one draw, None where nothing is left."""
        if not float(self.left.sum()):
            return None
        token = self.draw(self.left, len(self.outcome.drawn))
        probability, allowed = float(self.left[token]), self.allows(token)
        self.outcome.drawn.append((token, probability, allowed))
        if not allowed:
            self.left[token] = 0.0
            self.rejects += 1
        elif self.outcome.token is None:
            self.outcome.token = token
        return token, probability, allowed


def first_allowed(p: torch.Tensor, allows: Check, draw: Draw, max_rejects: int = 0) -> Outcome:
    """The token alone: without an estimate, which is set to 1. max_rejects: 0 for no limit."""
    sampler = Sampler(p, allows, draw)
    while (drawn := sampler.next()) and not drawn[2]:
        if sampler.rejects == max_rejects:
            break
    sampler.outcome.estimate = float(sampler.outcome.token is not None)
    return sampler.outcome


def recursive(p: torch.Tensor, allows: Check, draw: Draw, max_rejects: int = 0) -> Outcome:
    """One token more is drawn after the accepted one. With m the product of 1 - q over rejected tokens, the
    estimate is m if it is allowed too, else m q; q is a token's share of what was left when it was drawn.
    """
    sampler, m = Sampler(p, allows, draw), 1.0
    while True:
        before = float(sampler.left.sum())
        if (drawn := sampler.next()) is None:
            return sampler.outcome
        token, probability, allowed = drawn
        if allowed:
            break
        m *= 1.0 - probability / before
        if sampler.rejects == max_rejects:
            return sampler.outcome
    sampler.left[token] = 0.0
    extra = sampler.next()
    sampler.outcome.estimate = m if extra is None or extra[2] else m * probability / before
    return sampler.outcome


def geometric(
    p: torch.Tensor, allows: Check, draw: Draw, phantoms: Phantoms, max_accepts: int = 2, max_rejects: int = 0
) -> Outcome:
    """Tokens are drawn until `max_accepts` were accepted. Before each draw stand the phantoms: the rejected
    tokens that draws with replacement would have met again. The estimate is that of draws until this many
    accepts, (M - 1) / (accepts + rejects - 1).
    """
    sampler, accepts, rejects = Sampler(p, allows, draw), 0, 0
    while accepts < max_accepts:
        if sampler.rejects and (mass := float(sampler.left.sum())):
            rejects += phantoms(mass, len(sampler.outcome.drawn))
        if (drawn := sampler.next()) is None:
            break
        accepts, rejects = accepts + drawn[2], rejects + (not drawn[2])
        if not drawn[2] and sampler.rejects == max_rejects:
            break
    if accepts:
        sampler.outcome.estimate = min(max_accepts - 1, accepts) / (accepts + rejects - 1)
    return sampler.outcome
