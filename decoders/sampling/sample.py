"""Sampling: each token drawn from the model's distribution after transformers' own processors, in its order.

Knows one lane. Chance comes through the lane's chooser; the truncations are compared in "A Thorough
Examination of Decoding Methods in the Era of LLMs" (2024).
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import strategy
from decoders.sampling.next_token import next_token
from decoders.sampling.shaping import PROCESSORS, SHAPING


@strategy(
    name="sample",
    title="Sampling",
    family="sampling",
    parameters=SHAPING,
    views=("entropy", "sampler", "dependencies", "token_graph", "text"),
    badge=lambda parameters: "equal to generate" if parameters["temperature"] == 0.0 else "sampled",
    parts=lambda parameters: [PROCESSORS],
)
def sample(lane: Lane) -> Iterator[None]:
    """At every position one draw from the model's distribution, after it was reshaped.

    1. The model scores every token after the text so far.
    2. Processors reshape the scores: temperature makes them flatter or sharper, top-k, top-p and others
       remove the tail.
    3. One uniform number u decides: `x_t ~ softmax(processors(z))`. It is kept as the score "draw" of the
       token, with the running sums between which it fell; lanes with one seed use the same numbers.

    Temperature 0 takes the likeliest processed token and draws nothing.
    """
    while lane.more:
        logits = lane.score([lane.tip])  # [1, V]
        target = lane.distribution([lane.tip], logits)[0]
        if next_token(lane, logits, target, target) is None:
            return
        yield
