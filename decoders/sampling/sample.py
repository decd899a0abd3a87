"""Sampling: each token drawn from the model's distribution after transformers' own processors, in its order.

The truncations are compared in "A Thorough Examination of Decoding Methods in the Era of LLMs" (2024). Random
draws come from the lane's chooser.
"""

from collections.abc import Iterator

from decoders.constraints.settings import FAST_FORWARD
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.sampling.next_token import newest_row, next_token
from decoders.sampling.sampling_parameters import ENDS, PROCESSORS, SHAPING
from decoders.sampling.side_by_side import Sample, grown, take
from decoders.trace.scores import ScoreName


@strategy(
    name="sample",
    title="Sampling",
    family="sampling",
    parameters=(
        *SHAPING,
        *ENDS,
        FAST_FORWARD,
        integer("num_return_sequences", 1, "Texts that are drawn side by side.", low=1, high=64),
    ),
    badge=lambda parameters: "equal to generate" if parameters["temperature"] == 0.0 else "sampled",
    parts=lambda parameters: [PROCESSORS],
)
def sample(lane: Lane) -> Iterator[None]:
    """Draws each token from the model's distribution, after temperature and truncation.

    1. The model scores every token after the text so far.
    2. Processors reshape the scores: temperature makes the distribution flatter or sharper; top-k, top-p
       and others remove the tail.
    3. One uniform number u decides: `x_t ~ softmax(processors(z))`. It is recorded as the score "draw" of the
       token, with the cumulative sums between which it fell; lanes with the same seed use the same numbers.

    With num_return_sequences several texts are drawn side by side; the first is the lane's text, the same as
    if it were drawn alone. `generate` also keeps only the 50 most likely tokens where top_k is not set.

    Temperature 0 takes the most likely token after the processors and draws nothing.
    """
    if lane.parameters.get("num_return_sequences", 1) > 1:
        yield from several(lane)
        return
    while lane.more:
        logits = newest_row(lane)  # [1, V]
        if not lane.more:
            return
        target = lane.distribution([lane.tip], logits)[0]
        if next_token(lane, logits, target, target) is None:
            return
        yield


def several(lane: Lane) -> Iterator[None]:
    """Decodes num_return_sequences texts in parallel; the first is the output."""
    texts = [Sample(number, lane.tip) for number in range(lane.parameters["num_return_sequences"])]
    yield from grown(lane, texts)
    for rank, text in enumerate(texts, 1):
        lane.record_rank(text.node, ScoreName.SAMPLE, sum(text.logprobs), rank)
    take(lane, texts[0])
