"""Beam search, equal to transformers' `generate(num_beams=...)`: text, returned sequences and scores.

Knows one lane; the bookkeeping of live and finished hypotheses is in beams.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import Parameter, Part, strategy
from decoders.search.beams import EARLY_STOPPING, LENGTH_PENALTY, Beams, close_step


def too_many_returned(parameters: dict) -> str | None:
    """The sentence to show if more sequences are asked for than there are beams."""
    beams, wanted = parameters["num_beams"], parameters["num_return_sequences"]
    return (
        f"num_return_sequences is {wanted}, but only {beams} beams are kept; "
        "ask for fewer sequences or more num_beams."
        if wanted > beams
        else None
    )


@strategy(
    name="beam",
    title="Beam search",
    family="search",
    parameters=(
        Parameter("num_beams", "int", 4, "Hypotheses kept at each position.", low=1, high=64),
        LENGTH_PENALTY,
        EARLY_STOPPING,
        Parameter("num_return_sequences", "int", 1, "Finished texts to return.", low=1, high=64),
    ),
    together=too_many_returned,
    views=("beam_tree", "entropy", "dependencies", "text"),
    badge=lambda parameters: "equal to generate",
    parts=lambda parameters: [
        Part("frontier", "beams", "The num_beams likeliest live texts; all their continuations compete.")
    ],
)
def beam(lane: Lane) -> Iterator[None]:
    """Keeps the num_beams likeliest texts at every position; the best finished one wins.

    1. One forward scores all live texts.
    2. All their continuations compete by the sum of their log-probabilities, `S = sum log p(x_i | x_<i)`;
       the best num_beams live on, the others are pruned.
    3. A text that ends goes to the finished ones with the score `S / t ** length_penalty`, t its length.
    4. The search is over when no live text can still enter the finished ones.

    It looks for the likeliest text as a whole, not for a likely next token, and never draws.
    """
    beams = Beams(lane, lane.parameters["num_beams"])
    while beams.live:
        logprobs = lane.distribution(beams.live, lane.score(beams.live))  # [B, V]
        beams.advance(logprobs, logprobs)
        close_step(lane, [beams])
        yield
