"""Speculative decoding with a draft model: a chain of guesses, verified by the target in one forward."""

from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import Pair


@speculative(
    name="speculative",
    title="Speculative decoding",
    parameters=(
        integer("num_assistant_tokens", 3, "Tokens that the draft guesses per round.", low=1, high=64),
        *GREEDY,
    ),
    papers=("fast-inference-from-transformers-via-speculative-decoding",),
)
def speculative_pair(parameters: dict) -> Pair:
    """A small model guesses several tokens ahead; the target checks them all in one forward.

    1. The draft writes num_assistant_tokens guesses, each drawn from its own distribution q.
    2. One target forward gives the target's distribution p at every guess.
    3. From left to right a guess x passes if the draw u is below p/q: `u q(x) < p(x)`.
    4. At the first guess that fails, the target draws a token from the residual, `norm(max(p - q, 0))`;
       if all pass, it draws one more from p.

    The text is distributed exactly as if the target had written it alone. At temperature 0 a guess passes
    if it is the target's most likely token.
    """
    return simplest(draft_chain(parameters), parameters["temperature"])
