"""A verifier that moves the target towards the draft before it tests, so that drafted tokens pass more
easily. Knows distributions alone.

Chen et al. (2025), RAPID. Lossless at eta = 0 only.
"""

import torch

from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    WANTED_MORE,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.relaxed_walk import go_down, relaxed_distribution
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import number


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


def adjusted_target(eta: float, alpha: float, temperature: float) -> Verifier:
    """The verifier for one `eta` and `alpha`. At temperature 0 a token passes if it is the most likely one of
    the adjusted target.
    """
    greedy = temperature == 0.0
    fill = frozenset({FIXED if greedy else SAMPLED})

    def near(inputs: VerifierInput, node: int) -> torch.Tensor:
        q = inputs.guessed(node) if greedy else inputs.draft.q[node]
        return adjusted(inputs.probs[node], q, eta, alpha)

    def drawn(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token, moved_probs = inputs.tokens[child], near(inputs, node)
        p, q, moved = (float(x[token]) for x in (inputs.p[node], inputs.draft.q[node], moved_probs))
        probability = acceptance(moved, q)
        accepted, u = inputs.chooser.bernoulli(probability, ("accept", *at))
        reason = (
            f"The target gave {number(p)}, adjusted {number(moved)}, the draft {number(q)}: it is accepted "
            f"with probability {number(probability)}. It was {'accepted' if accepted else 'rejected'}."
        )
        return TokenTest(child, bool(accepted), moved, q, u, reason, None if accepted else left(inputs, node))

    def likeliest(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token, moved_probs = inputs.tokens[child], near(inputs, node)
        accepted = token == int(moved_probs.argmax())
        reason = (
            f"The target gave {number(float(inputs.probs[node][token]))}, adjusted "
            f"{number(float(moved_probs[token]))}, {'the largest' if accepted else 'not the largest'}."
        )
        return TokenTest(child, accepted, float(inputs.probs[node][token]), reason=reason)

    def left(inputs: VerifierInput, node: int) -> torch.Tensor:
        return still_wanted(inputs.p[node], inputs.draft.q[node], near(inputs, node))

    def distribution(inputs: VerifierInput, node: int) -> torch.Tensor:
        passes = torch.minimum(inputs.draft.q[node], near(inputs, node))
        return relaxed_distribution(passes, left(inputs, node))

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, likeliest if greedy else drawn, left, WANTED_MORE, greedy)

    return Verifier(
        verify,
        fill if eta == 0.0 else frozenset(),
        name="adjusted target",
        relaxed_for=fill,
        distribution=distribution,
        says=f"A drafted token passes with probability min(1, p'/q), where p' is p moved towards q, by eta "
        f"= {number(eta)}."
        if not greedy
        else f"A drafted token passes if it is the most likely one under p', which is p moved towards q, by "
        f"eta = {number(eta)}.",
    )
