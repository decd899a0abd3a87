"""Speculative decoding with a draft model: a chain of guesses, verified by the target in one forward."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import TIMED_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter


def speculative_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain from the draft model; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    return simplest(draft_chain(parameters), temperature)


@draft_and_verify(
    speculative_pair,
    name="speculative",
    title="Speculative decoding",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "num_assistant_tokens", "int", 3, "Tokens that the draft guesses per round.", low=1, high=64
        ),
        *GREEDY,
    ),
    papers=("fast-inference-from-transformers-via-speculative-decoding",),
    views=TIMED_VIEWS,
)
def speculative(lane: Lane) -> Iterator[None]:
    """A small model guesses several tokens ahead; the target checks them all in one forward.

    1. The draft writes num_assistant_tokens guesses, each drawn from its own distribution q.
    2. One target forward gives the target's distribution p at every guess.
    3. From left to right a guess x passes if the draw u is below p/q: `u q(x) < p(x)`.
    4. At the first guess that fails, the target draws a token from the residual, `norm(max(p - q, 0))`;
       if all pass, it draws one more from p.

    The text is distributed exactly as if the target had written it alone. At temperature 0 a guess passes
    if it is the target's most likely token.
    """
    drafter, verifier, _ = speculative_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
