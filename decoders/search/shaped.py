"""The log-probabilities that a search uses if processors are set: those after the processors."""

import math

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax


def shaped(lane: Lane, nodes: list[int], logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities [N, V] of the model after each of `nodes`, and those after the processors, the same
    if there are none. Both are recorded. A row in which no token is left is -inf throughout.
    """
    logprobs = lane.distribution(nodes, logits)
    scores = lane.process(logits, nodes)
    if scores is logits:
        return logprobs, logprobs
    record_processed(lane, nodes, scores)
    gone = ~scores.isfinite().any(-1, keepdim=True)
    return logprobs, log_softmax(scores.masked_fill(gone, 0.0)).masked_fill(gone, -math.inf)


def record_processed(lane: Lane, nodes: list[int], scores: torch.Tensor) -> None:
    """Records the scores [N, V] after the processors, for those nodes after which a token is left."""
    left = scores.isfinite().any(-1).tolist()
    rows = [i for i, any_left in enumerate(left) if any_left]
    lane.distribution([nodes[i] for i in rows], scores[rows], view="processed")
