"""Fuzzy acceptance: a drafted token passes where the two models nearly agree, whatever the token is.

Holsman et al. (2025), Fuzzy Speculative Decoding. Here the divergence is that of the distributions after
temperature and truncation, and of those before the argmax at temperature 0; the paper's default leaves them
out.
"""

import math
from dataclasses import dataclass

import torch

from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import FIXED, SAMPLED, Pair, TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed import FromTarget
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason


def kl(p: torch.Tensor, q: torch.Tensor) -> float:
    """Sum of p log(p / q) over [V], in nats; infinite where q is 0 and p is not."""
    return float((torch.xlogy(p, p) - torch.xlogy(p, q)).sum().clamp(min=0.0))


def js(p: torch.Tensor, q: torch.Tensor) -> float:
    """The Jensen-Shannon divergence: the mean KL divergence of both distributions from their mean, at most ln
    2.
    """
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def js_reversed(p: torch.Tensor, q: torch.Tensor) -> float:
    """The same with the arguments exchanged, as the authors' code has it: without an upper limit."""
    middle = (p + q) / 2
    return (kl(middle, p) + kl(middle, q)) / 2


def tv(p: torch.Tensor, q: torch.Tensor) -> float:
    """Total variation, half the sum of |p - q|."""
    return float((p - q).abs().sum()) / 2


DIVERGENCES = {"js": js, "js_reversed": js_reversed, "kl": kl, "kl_reversed": lambda p, q: kl(q, p), "tv": tv}


@dataclass(frozen=True)
class FuzzyAcceptance(FromTarget):
    """A token passes while the divergence of p and q is at most `limit`. The rule ignores the token itself,
    so it takes one guess per position.
    """

    limit: float
    divergence: str

    @property
    def exact_for(self) -> frozenset[str]:
        return self.fill if self.limit == 0.0 else frozenset()

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        apart = DIVERGENCES[self.divergence](p, place.guessed())
        finite = apart if math.isfinite(apart) else None  # JSON has no infinity
        numbers = {"apart": finite, "limit": self.limit, "measure": self.divergence}
        reason = Reason(Code.DIVERGENCE, numbers)
        return TokenTest(place.child, apart <= self.limit, float(p[token]), reasons=(reason,))

    def distribution(self, inputs: VerifierInput, node: int) -> torch.Tensor:
        """The draft's where the token passes, else the target's [V]."""
        apart = DIVERGENCES[self.divergence](inputs.probs[node], inputs.guessed(node))
        return inputs.draft.q[node] if apart <= self.limit else inputs.p[node]


def fuzzy_acceptance(limit: float, divergence: str, temperature: float) -> Verifier:
    """The verifier for one `limit` of one divergence; at the first position where it is larger, the target's
    own token is drawn from p.
    """
    rule = FuzzyAcceptance(temperature == 0.0, limit, divergence)
    return by_rule(
        rule,
        name="fuzzy acceptance",
        says=f"A drafted token passes where the divergence ({divergence}) of target and draft is at most "
        f"{number(limit)}.",
        relaxed_for=frozenset({FIXED, SAMPLED}),
        distribution=rule.distribution,
    )


@speculative(
    name="fuzzy",
    title="Fuzzy speculative decoding",
    parameters=(
        real(
            "limit",
            0.1,
            "The largest divergence of target and draft at which a token passes; 0 is lossless.",
            low=0.0,
            high=1e6,
        ),
        choice("divergence", "js", "How the divergence is measured.", DIVERGENCES),
        integer("num_assistant_tokens", 4, "Tokens that the draft guesses per round.", low=1, high=32),
        *GREEDY,
    ),
    papers=("fuzzy-speculative-decoding-for-a-tunable-accuracy",),
)
def fuzzy_pair(parameters: dict) -> Pair:
    """Accepts any drafted token where the two distributions are close; elsewhere the target chooses.

    1. The draft guesses a chain and the target scores it, as in speculative decoding.
    2. At each position the divergence of the two distributions is computed; a guess passes while it is at
       most limit, whatever its token is.
    3. At the first position where it is larger, the target draws the token from its own distribution.

    The limit trades faithfulness to the target's distribution for speed: at 0 the draft decides nothing, at
    infinity everything. The lane says how far its tokens deviate from it. js is the Jensen-Shannon
    divergence, js_reversed that of the authors' code.
    """
    verifier = fuzzy_acceptance(parameters["limit"], parameters["divergence"], parameters["temperature"])
    return draft_chain(parameters), verifier
