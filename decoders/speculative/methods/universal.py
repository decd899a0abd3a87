"""Universal drafting: speculative decoding with a draft model that has another tokenizer than the target."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.other_tokenizer import (
    COMMON,
    FIRST,
    TEXT,
    OwnTokens,
    text_drafter,
    token_drafter,
)
from decoders.speculative.interfaces import TIMED_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter


def universal_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain through text or through tokens, and its simplest exact verifier."""
    if parameters["through"] == TEXT:
        drafter = text_drafter(parameters)
    else:
        drafter = token_drafter(parameters, first=parameters["through"] == FIRST)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    universal_pair,
    name="universal",
    title="Universal drafting",
    needs=("target", "draft"),
    any_tokenizer=True,
    parameters=(
        Parameter(
            "num_assistant_tokens", "int", 4, "Tokens that the draft writes per round.", low=1, high=64
        ),
        Parameter(
            "through",
            "choice",
            TEXT,
            "What carries the guesses over: text, the tokens that both models have, or first pieces of "
            "the draft's tokens.",
            choices=(TEXT, COMMON, FIRST),
        ),
        *GREEDY,
    ),
    views=TIMED_VIEWS,
)
def universal(lane: Lane) -> Iterator[None]:
    """Any model can draft, whatever its tokenizer: its guesses are transferred as text or as shared tokens.

    The draft reads the text in its own tokens. After each round the last 10 tokens of the prompt and
    everything after them are tokenized again, so that the draft reads tokens as in its training. There are
    three ways back:

    1. `text` (universal assisted generation; string-level exact match): the draft's most likely tokens are
       joined to a text, which the target's tokenizer splits again after the last 10 tokens. The target draws
       its own token at each position, and a guess passes if it equals it.
    2. `common tokens` (token-level intersection): the draft's distribution is restricted to tokens that the
       target has too, `q'(x) = q(x) / Σ q(y)` over these. Guesses are drawn from q' and tested with
       `min(1, p/q')`; after a rejection one is drawn from `norm(max(p - q', 0))`.
    3. `first pieces` (string-level rejection sampling with one draft token per guess): each draft token d
       maps to the first target token of its text, `ψ(t) = Σ q(d)` over all d that map to t. Guesses are
       drawn from ψ and tested with `min(1, p/ψ)`.

    All three keep the target's distribution exactly, since every guess is a token of the target whose
    probability of being drafted is known or does not matter. The paper's string-level rejection sampling lets
    several draft tokens make one guess; its ψ then needs a forward per combination of them, which is left out
    here. Special tokens are not text; the two end-of-text tokens are treated as equal.

    Timor et al. (2025), Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
    Heterogeneous Vocabularies.
    """
    drafter, verifier, _ = universal_pair(lane.parameters)
    lane.scorers["draft"] = OwnTokens(lane)
    yield from rounds(lane, drafter, verifier)
