"""Greedy decoding: always the likeliest token. Knows one lane; everything else compares itself with this."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import strategy


@strategy(
    name="greedy",
    title="Greedy",
    family="sampling",
    views=("entropy", "token_graph", "dependencies", "text"),
    badge=lambda parameters: "equal to generate",
)
def greedy(lane: Lane) -> Iterator[None]:
    """At every position the likeliest token, ties to the smaller token id.

    The model gives every token of its vocabulary a probability after the text so far; the largest is taken:
    `x_t = argmax_x p(x | x_<t)`.

    One target forward writes one token, and nothing is left to chance. It never looks back: the token that
    is best now may lead into a text that is worse as a whole.
    """
    while lane.more:
        logits = lane.score([lane.tip])  # [1, V]
        logprobs = lane.distribution([lane.tip], logits)[0]
        token = int(logits[0].argmax())
        logprob = float(logprobs[token])
        node = lane.propose(lane.tip, token, logprob)
        lane.commit([node], [logprob])
        yield
