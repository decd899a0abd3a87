"""One token from a row of logits: the processors that the parameters switch on, then a draw or the argmax."""

import torch

from decoders.chooser import Tag
from decoders.lane import Lane
from decoders.logits.distributions import fetched, of_token, probabilities
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

NOTHING_LEFT = "The processors left no token to choose from; loosen no_repeat_ngram_size or allow more words."


def newest_row(lane: Lane) -> torch.Tensor:
    """The logits [1, V] after the newest token, in one forward. With `constraint_fast_forward`, tokens that
    the constraint forces are written first and scored in the same forward; the text may end with them.
    """
    forced = []
    if lane.constraint is not None and lane.parameters.get("constraint_fast_forward"):
        forced = lane.constraint.forced(lane.tip)[: lane.left]
    if not forced:
        return lane.score([lane.tip])
    nodes = [lane.tip]
    for token in forced:
        nodes.append(lane.propose(nodes[-1], token, None, "constraint"))
    logits = lane.score(nodes)  # [1 + F, V]
    rows = lane.distribution(nodes[:-1], logits[:-1])
    logprobs = [float(row[token]) for row, token in zip(rows, forced, strict=True)]
    lane.note(f"The constraint forces {many(len(forced), 'token')}; one forward scores all of them.")
    lane.commit(nodes[1:], logprobs)
    return logits[-1:]


def next_token(
    lane: Lane, logits: torch.Tensor, offered: torch.Tensor, target: torch.Tensor, source: str = "target"
) -> int | None:
    """Processes `logits` [1, V] after the lane's tip, chooses a token, commits it and returns its node.

    offered [V]: their log-probabilities; target [V]: the target's own, for the record; source: the model that
    gave the row. The distribution after processors is recorded. At temperature 0 the most likely token is
    taken and nothing is drawn. None, and the lane ends with a message, if the processors leave no token.
    """
    left = processed(lane, logits, offered)
    if left is None:
        return None
    scores, offered = left
    if lane.parameters["temperature"] == 0.0:
        token, (logprob, own) = of_token(scores.argmax(-1), offered, target)
        node = lane.propose(lane.tip, token, logprob, source)
    else:
        node = propose_drawn(lane, probabilities(scores)[0], offered, source)
        own = float(target[lane.tree.tokens[node]])
    lane.commit([node], [own])
    return node


def processed(
    lane: Lane, logits: torch.Tensor, offered: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """(`logits` [1, V] after processors, their log-probabilities [V]); without processors `logits` and
    `offered` themselves. Records the distribution. None, and the lane ends with a message, if no token is
    left.
    """
    scores = lane.process(logits, [lane.tip], record=True)
    if scores is logits:
        return logits, offered
    if not scores.isfinite().any():
        lane.ended_by = NOTHING_LEFT
        return None
    return scores, lane.distribution([lane.tip], scores, view="processed")[0]


def pick(lane: Lane, scores: torch.Tensor, tag: Tag) -> int:
    """A token from processed scores [V]: the most likely at temperature 0, else drawn from the stream
    `tag`.
    """
    if lane.parameters["temperature"] == 0.0:
        return int(scores.argmax())
    return lane.chooser.categorical(probabilities(scores[None])[0], tag).value


def propose_drawn(lane: Lane, probs: torch.Tensor, offered: torch.Tensor, source: str = "target") -> int:
    """Proposes a token drawn from `probs` [V] after the lane's tip, with its log-probability in `offered`
    [V]; returns its node. The uniform number u, if known, is recorded as the score "draw", with the
    cumulative sums between which it fell.
    """
    token, u = lane.chooser.categorical(probs, ("sample", lane.tree.depths[lane.tip] + 1))
    at = slice(token, token + 1)
    logprob, low, own = fetched(offered[at], probs[:token].sum(0, keepdim=True), probs[at])
    node = lane.propose(lane.tip, token, logprob, source)
    if u is not None:
        lane.record_measure(node, ScoreName.DRAW, u, low=low, high=low + own)
    return node
