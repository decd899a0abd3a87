"""Lenience: token rejection with a discounted draft probability.

Leviathan et al. (2023), appendix A.5. With lenience l a drafted token passes with min(1, p / (l q)), so no
token becomes more than 1/l times as likely as under the target. l = 1 is token rejection.
"""

from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import residual
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import (
    FIXED,
    RELAXED_VIEWS,
    SAMPLED,
    WANTED_MORE,
    Drafter,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.relaxed_walk import go_down, relaxed_distribution
from decoders.strategy import Parameter
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import number


def lenient_rejection(lenience: float, temperature: float) -> Verifier:
    """The verifier for one `lenience` in (0, 1]; at temperature 0 x passes if p(x) >= lenience * max p."""
    greedy = temperature == 0.0
    fill = frozenset({FIXED if greedy else SAMPLED})

    def drawn(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token = inputs.tokens[child]
        p, q = float(inputs.p[node][token]), float(inputs.draft.q[node][token])
        accepted, u = inputs.chooser.bernoulli(acceptance(p, lenience * q), ("accept", *at))
        comparison = (
            f"The target gave {number(p)}, the draft {number(q)}, which counts as {number(lenience * q)}: it "
            f"is accepted with probability {number(acceptance(p, lenience * q))}"
        )
        alone = accepted and u is not None and u * q >= p
        why = (
            ". It was accepted, and without lenience it would not be."
            if alone
            else (". It was accepted." if accepted else ". It was rejected.")
        )
        return TokenTest(child, bool(accepted), p, lenience * q, u, comparison + why)

    def likely_enough(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        p, best = float(inputs.probs[node][inputs.tokens[child]]), float(inputs.probs[node].max())
        accepted = p >= lenience * best
        reason = (
            f"The target gave {number(p)}; {number(lenience)} of its best, {number(best)}, is "
            f"{'enough' if accepted else 'required'}."
        )
        return TokenTest(child, accepted, p, reason=reason)

    def left(inputs: VerifierInput, node: int) -> torch.Tensor:
        rest = residual(inputs.p[node], lenience * inputs.draft.q[node])
        return inputs.p[node] if rest is None else rest

    def distribution(inputs: VerifierInput, node: int) -> torch.Tensor:
        passes = torch.minimum(inputs.draft.q[node], inputs.p[node] / lenience)
        return relaxed_distribution(passes, left(inputs, node))

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, likely_enough if greedy else drawn, left, WANTED_MORE, greedy)

    return Verifier(
        verify,
        fill if lenience == 1.0 else frozenset(),
        name="lenient rejection",
        relaxed_for=fill,
        distribution=distribution,
        says=f"A drafted token passes with probability min(1, p / ({number(lenience)} q))."
        if not greedy
        else f"A drafted token passes if the target gives it at least {number(lenience)} of its best "
        "token's probability.",
    )


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain from the draft model, and the relaxed rule."""
    temperature = parameters["temperature"]
    return draft_chain(parameters), lenient_rejection(parameters["lenience"], temperature), temperature


@draft_and_verify(
    parts,
    name="lenient",
    title="Lenient speculative decoding",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "lenience",
            "float",
            0.5,
            "What the draft's probability is multiplied by; 1 is lossless.",
            low=0.01,
            high=1.0,
        ),
        Parameter(
            "num_assistant_tokens", "int", 4, "Tokens that the draft guesses per round.", low=1, high=32
        ),
        *GREEDY,
    ),
    views=RELAXED_VIEWS,
)
def lenient(lane: Lane) -> Iterator[None]:
    """Scales the draft's probability down in the test, so that more drafted tokens are accepted.

    1. The draft guesses a chain and the target scores it, as in speculative decoding.
    2. A guess x passes if the draw u is below `p / (lenience q)`; no token becomes more than 1/lenience
       times as likely as the target has it.
    3. At the first guess that fails, the target draws from `norm(max(p - lenience q, 0))`.

    At temperature 0 a guess passes if the target gives it at least lenience times the probability of its
    best token. With lenience 1 nothing is lost; below it the lane says how far its tokens deviate from
    the target's distribution.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
