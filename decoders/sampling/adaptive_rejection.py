"""Adaptive weighted rejection sampling of one token: draw, check, and draw again from the remaining tokens.

Lipkin et al. (2025). The token follows the model's distribution restricted to allowed tokens; the draws also
give an unbiased estimate of the total probability Z of allowed tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

Check = Callable[[int], bool]
Draw = Callable[[torch.Tensor, int], int]  # (weights [V], number of this draw) -> token
Phantoms = Callable[[float, int], int]  # (mass left, number of the draw) -> failures before a success


@dataclass
class Outcome:
    """The result for one token. `token`: the accepted token, None if no allowed one was drawn. `estimate`:
    the estimate of Z. `drawn`: (token, probability, allowed) of all draws in order; the draws after the
    accepted token were made only for the estimate.
    """

    token: int | None = None
    estimate: float = 0.0
    drawn: list[tuple[int, float, bool]] = field(default_factory=list)


class Sampler:
    """Draws tokens; a rejected one is not drawn again."""

    def __init__(self, p: torch.Tensor, allows: Check, draw: Draw):
        """p [V]: probabilities in float64."""
        self.left, self.allows, self.draw = p.clone(), allows, draw
        self.rejects, self.outcome = 0, Outcome()

    def next(self) -> tuple[int, float, bool] | None:
        """One draw: (token, probability, allowed); None if no probability is left."""
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
    """Draws until a token is allowed, without estimating Z: the estimate is 1, or 0 if no token was allowed.
    max_rejects: the largest number of rejected draws, 0 for no limit.
    """
    sampler = Sampler(p, allows, draw)
    while (drawn := sampler.next()) and not drawn[2]:
        if sampler.rejects == max_rejects:
            break
    sampler.outcome.estimate = float(sampler.outcome.token is not None)
    return sampler.outcome


def recursive(p: torch.Tensor, allows: Check, draw: Draw, max_rejects: int = 0) -> Outcome:
    """Draws one more token after the accepted one. q is a token's share of the probability left when it was
    drawn, and m the product of 1 - q over rejected tokens. The estimate is m if the extra token is allowed
    too, else m times the accepted token's q.
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
    """Draws until `max_accepts` tokens were accepted. `phantoms` draws the number of rejections that sampling
    with replacement would have repeated before each draw. The estimate is that of negative binomial sampling
    with M accepts, (M - 1) / (accepts + rejects - 1).
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
