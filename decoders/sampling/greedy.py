"""Greedy decoding: always the most likely token. The baseline for all other strategies."""

from collections.abc import Iterator

from decoders.constraints.settings import FAST_FORWARD
from decoders.lane import Lane
from decoders.logits.distributions import of_token
from decoders.registry import strategy
from decoders.sampling.next_token import newest_row, processed
from decoders.sampling.sampling_parameters import ENDS, PENALTIES, PROCESSORS


@strategy(
    name="greedy",
    title="Greedy",
    family="sampling",
    parameters=(*PENALTIES, *ENDS, FAST_FORWARD),
    badge=lambda parameters: "equal to generate",
    parts=lambda parameters: [PROCESSORS],
)
def greedy(lane: Lane) -> Iterator[None]:
    """Takes the most likely token at every position; ties go to the smaller token id.

    The model gives every token of its vocabulary a probability after the text so far; the largest is taken:
    `x_t = argmax_x p(x | x_<t)`. Penalties and forbidden words, if there are any, reshape the scores first.

    One target forward writes one token, and nothing is random. Greedy decoding never looks back: the token
    that is best now may lead to a text that is worse as a whole.
    """
    while lane.more:
        logits = newest_row(lane)  # [1, V]
        if not lane.more:
            return
        target = lane.distribution([lane.tip], logits)[0]  # [V]
        left = processed(lane, logits, target)
        if left is None:
            return
        scores, offered = left
        token, (logprob, own) = of_token(scores.argmax(-1), offered, target)
        node = lane.propose(lane.tip, token, logprob)
        lane.commit([node], [own])
        yield
