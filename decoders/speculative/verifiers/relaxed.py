"""What relaxed rules share. They keep more of the draft than an exact rule would, at the price of the
target's distribution.
"""

from dataclasses import dataclass

import torch

from decoders.logits.distributions import residual
from decoders.speculative.interfaces import FIXED, SAMPLED
from decoders.speculative.verifiers.walk import Rule
from decoders.trace.reasons import Code


@dataclass(frozen=True)
class Relaxed(Rule):
    """A rule that is exact only at a limit of its parameter. `greedy`: at temperature 0, where the target's
    own token is its most likely one, whatever was rejected.
    """

    greedy: bool

    @property
    def fill(self) -> frozenset[str]:
        """How the slots below a node are filled that this rule is made for."""
        return frozenset({FIXED if self.greedy else SAMPLED})

    def own_code(self, whole: bool) -> Code:
        if self.greedy:
            return Code.ARGMAX_AFTER_DRAFT if whole else Code.ARGMAX_DID_NOT_PASS
        return Code.ALL_ACCEPTED if whole else self.drawn_code()

    def drawn_code(self) -> Code:
        """What the target's own token is drawn from after a rejection."""
        return Code.RESIDUAL


class FromTarget(Relaxed):
    """A relaxed rule under which the target's own token after a rejection comes from p itself."""

    def drawn_code(self) -> Code:
        return Code.TARGET


def residual_or_p(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """norm(max(p - q, 0)) [V]; p if nothing is left."""
    left = residual(p, q)
    return p if left is None else left


def relaxed_distribution(passes: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """The distribution [V] that a token has: `passes` [V] is how likely each token is drafted and passes, the
    rest is drawn from `left` [V].
    """
    return passes + (1.0 - passes.sum()).clamp(min=0.0) * left
