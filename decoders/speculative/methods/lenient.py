"""Lenience: token rejection with a discounted draft probability.

Leviathan et al. (2023), appendix A.5. With lenience l a drafted token passes with min(1, p / (l q)), so no
token becomes more than 1/l times as likely as under the target. l = 1 is token rejection.
"""

from dataclasses import dataclass

import torch

from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import Pair, TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed import Relaxed, relaxed_distribution, residual_or_p
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.strategy import PartId
from decoders.trace.events import acceptance
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason


@dataclass(frozen=True)
class Lenient(Relaxed):
    """A token passes with min(1, p / (lenience q)), at temperature 0 if p(x) >= lenience * max p."""

    lenience: float

    @property
    def exact_for(self) -> frozenset[str]:
        return self.fill if self.lenience == 1.0 else frozenset()

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        p_token = float(p[token])
        if self.greedy:
            best = float(p.max())
            accepted = p_token >= self.lenience * best
            numbers = {"p": p_token, "lenience": self.lenience, "best": best, "accepted": accepted}
            return TokenTest(place.child, accepted, p_token, reasons=(Reason(Code.SHARE_OF_BEST, numbers),))
        q_token = float(q[token])
        discounted = self.lenience * q_token
        probability = acceptance(p_token, discounted)
        accepted, u = place.accept(probability)
        numbers = {"p": p_token, "q": q_token, "discounted": discounted, "probability": probability, "u": u}
        reason = Reason(Code.LENIENT, numbers | {"accepted": bool(accepted)})
        return TokenTest(place.child, bool(accepted), p_token, discounted, u, (reason,))

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor:
        return p if self.greedy else residual_or_p(p, self.lenience * q)

    def distribution(self, inputs: VerifierInput, node: int) -> torch.Tensor:
        """Of the token that is kept or drawn after `node` [V]."""
        p, q = inputs.p[node], inputs.draft.q[node]
        return relaxed_distribution(torch.minimum(q, p / self.lenience), residual_or_p(p, self.lenience * q))


def lenient_rejection(lenience: float, temperature: float) -> Verifier:
    """The verifier for one `lenience` in (0, 1]."""
    rule = Lenient(temperature == 0.0, lenience)
    return by_rule(
        rule,
        name="lenient rejection",
        says=f"A drafted token passes with probability min(1, p / ({number(lenience)} q))."
        if not rule.greedy
        else f"A drafted token passes if the target gives it at least {number(lenience)} of its best "
        "token's probability.",
        id=PartId.LENIENT_REJECTION,
        relaxed_for=rule.fill,
        distribution=rule.distribution,
    )


@speculative(
    name="lenient",
    title="Lenient speculative decoding",
    parameters=(
        real(
            "lenience",
            0.5,
            "Factor of the draft's probability in the test; 1 is lossless.",
            low=0.01,
            high=1.0,
        ),
        integer("num_assistant_tokens", 4, "Tokens that the draft guesses per round.", low=1, high=32),
        *GREEDY,
    ),
)
def lenient_pair(parameters: dict) -> Pair:
    """Scales the draft's probability down in the test, so that more drafted tokens are accepted.

    1. The draft guesses a chain and the target scores it, as in speculative decoding.
    2. A guess x passes if the draw u is below `p / (lenience q)`; no token becomes more than 1/lenience
       times as likely as the target has it.
    3. At the first guess that fails, the target draws from `norm(max(p - lenience q, 0))`.

    At temperature 0 a guess passes if the target gives it at least lenience times the probability of its
    best token. With lenience 1 nothing is lost; below it the lane says how far its tokens deviate from
    the target's distribution.
    """
    return draft_chain(parameters), lenient_rejection(parameters["lenience"], parameters["temperature"])
