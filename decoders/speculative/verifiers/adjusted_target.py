"""The rule that moves the target towards the draft before it tests, so that drafted tokens pass more easily.

Chen et al. (2025), RAPID. Lossless at eta = 0 only.
"""

from dataclasses import dataclass

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed import Relaxed, relaxed_distribution
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.events import acceptance
from decoders.trace.reasons import Code, Reason


def adjusted(p: torch.Tensor, q: torch.Tensor, eta: float, alpha: float) -> torch.Tensor:
    """softmax(log p - eta g) over [V], with g = p - q where q >= alpha max q, else 0."""
    gap = torch.where(q >= alpha * q.max(), p - q, 0.0)
    return torch.softmax(p.log() - eta * gap, dim=-1)


def still_wanted(p: torch.Tensor, q: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    """norm(max(0, p - q, p - near)) over [V]: what a token is drawn from after a rejection; p if nothing is
    left.
    """
    left = torch.maximum(p - q, p - near).clamp(min=0.0)
    total = left.sum()
    return left / total if total > 0 else p


@dataclass(frozen=True)
class AdjustedTarget(Relaxed):
    """p' is p moved towards q. A token passes with min(1, p'/q), at temperature 0 if it is argmax p'."""

    eta: float
    alpha: float

    @property
    def shows_residual(self) -> bool:
        return not self.greedy

    @property
    def exact_for(self) -> frozenset[str]:
        return self.fill if self.eta == 0.0 else frozenset()

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        moved_probs = adjusted(p, place.guessed() if self.greedy else q, self.eta, self.alpha)
        p_token, moved = float(p[token]), float(moved_probs[token])
        numbers = {"p": p_token, "moved": moved}
        if self.greedy:
            accepted = token == int(moved_probs.argmax())
            reason = Reason(Code.ADJUSTED_ARGMAX, numbers | {"accepted": accepted})
            return TokenTest(place.child, accepted, p_token, reasons=(reason,))
        q_token = float(q[token])
        probability = acceptance(moved, q_token)
        accepted, u = place.accept(probability)
        numbers |= {"q": q_token, "probability": probability, "accepted": bool(accepted)}
        reason = Reason(Code.ADJUSTED_TARGET, numbers)
        return TokenTest(place.child, bool(accepted), moved, q_token, u, (reason,))

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor:
        return p if self.greedy else still_wanted(p, q, adjusted(p, q, self.eta, self.alpha))

    def distribution(self, inputs: VerifierInput, node: int) -> torch.Tensor:
        """Of the token that is kept or drawn after `node` [V]."""
        p, q = inputs.p[node], inputs.draft.q[node]
        moved = adjusted(p, q, self.eta, self.alpha)
        return relaxed_distribution(torch.minimum(q, moved), still_wanted(p, q, moved))


def adjusted_target(eta: float, alpha: float, temperature: float) -> Verifier:
    """The verifier for one `eta` and `alpha`."""
    rule = AdjustedTarget(temperature == 0.0, eta, alpha)
    card = verifiers.adjusted_target(eta, rule.greedy)
    return by_rule(rule, *card, relaxed_for=rule.fill, distribution=rule.distribution)
