"""One token from one row of scores: the processors that the parameters ask for, then a draw or the argmax.

Knows one lane and a row of scores, not where the scores come from.
"""

import torch

from decoders.distributions import probabilities
from decoders.lane import Lane

NOTHING_LEFT = "The processors left no token to choose from; loosen no_repeat_ngram_size or allow more words."


def next_token(lane: Lane, logits: torch.Tensor, offered: torch.Tensor, target: torch.Tensor) -> int | None:
    """Processes `logits` [1, V] after the lane's tip, chooses a token, commits it and returns its node.

    offered [V]: their log-probabilities; target [V]: the target's own, for the record. What the processors
    leave is told. At temperature 0 the likeliest token is taken and nothing is drawn. None, and the lane ends
    with a sentence, if the processors leave no token.
    """
    processed = lane.process(logits, [lane.tip], tell=True)
    if processed is not logits:
        if not processed.isfinite().any():
            lane.ended_by = NOTHING_LEFT
            return None
        offered = lane.distribution([lane.tip], processed, view="processed")[0]
    if lane.parameters["temperature"] == 0.0:
        token, u = int(processed[0].argmax()), None
    else:
        position = lane.tree.depths[lane.tip] + 1
        law = probabilities(processed)[0]  # [V]
        token, u = lane.chooser.categorical(law, ("sample", position))
    node = lane.propose(lane.tip, token, float(offered[token]))
    if u is not None:
        low = float(law[:token].sum())
        lane.rank(node, "draw", u, low=low, high=low + float(law[token]))
    lane.commit([node], [float(target[token])])
    return node
