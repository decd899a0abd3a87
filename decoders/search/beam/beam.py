"""Beam search, equal to transformers' `generate(num_beams=...)`: text, returned sequences and scores.

The bookkeeping of live and finished hypotheses is in beam_state.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.logits.processor_order import stages
from decoders.parameters import integer, switch
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import ENDS, PROCESSORS, SHAPING
from decoders.search.beam.beam_state import (
    EARLY_STOPPING,
    LENGTH_PENALTY,
    RETURNED,
    Beams,
    close_step,
    too_many_returned,
)
from decoders.search.shaped import record_processed
from decoders.strategy import Part


def unusable(parameters: dict) -> str | None:
    """The message to show if more sequences are asked for than there are beams, or nothing can be drawn."""
    if parameters["do_sample"] and parameters["temperature"] == 0.0:
        return "At temperature 0 nothing is drawn; switch do_sample off or choose a higher temperature."
    return too_many_returned(parameters)


@strategy(
    name="beam",
    title="Beam search",
    family="search",
    parameters=(
        integer("num_beams", 4, "Hypotheses kept at each position.", low=1, high=64),
        LENGTH_PENALTY,
        EARLY_STOPPING,
        RETURNED,
        switch("do_sample", False, "Draw the continuations that compete: beam sampling."),
        *SHAPING,
        *ENDS,
    ),
    together=unusable,
    view="beam_tree",
    badge=lambda parameters: "sampled" if parameters["do_sample"] else "equal to generate",
    parts=lambda parameters: [
        Part("frontier", "beams", "The num_beams most likely live texts; all their continuations compete."),
        PROCESSORS,
    ],
)
def beam(lane: Lane) -> Iterator[None]:
    """Keeps the num_beams most likely texts at every position; the best finished one wins.

    1. One forward scores all live texts.
    2. All their continuations compete by the sum of their log-probabilities, `S = sum log p(x_i | x_<i)`;
       the best num_beams survive, the others are pruned.
    3. A text that ends goes to the finished ones with the score `S / t ** length_penalty`, t its length.
    4. The search is over when no live text can still enter the finished ones.

    With do_sample the continuations are drawn, without replacement, in proportion to `exp S` after the
    processors: twice num_beams of them if the model has one end token. Only the first num_beams drawn may
    finish; of the continuations that do not end, the best survive.

    Penalties and forbidden words change the log-probabilities, so the sums need not be log-probabilities of
    texts.

    Beam search looks for the most likely text as a whole, not for a likely next token.
    """
    beams = Beams(lane, lane.parameters["num_beams"], added="processors" if stages(lane.shaping) else None)
    while beams.live:
        logprobs = lane.distribution(beams.live, lane.score(beams.live))  # [B, V]
        scores = lane.process(logprobs, beams.live)
        if scores is not logprobs:
            if not scores.isfinite().any():
                lane.ended_by = NOTHING_LEFT
                return
            record_processed(lane, beams.live, scores)
        beams.advance(scores, logprobs)
        close_step(lane, [beams])
        yield
