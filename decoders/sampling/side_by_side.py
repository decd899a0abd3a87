"""Several samples that grow in parallel, one token each per forward."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from decoders.lane import Lane
from decoders.sampling.next_token import NOTHING_LEFT, pick
from decoders.trace.number_format import many


@dataclass
class Sample:
    """One sample: its number, its newest node, and each token's log-probability under the target. stuck:
    whether the processors leave it no further token.
    """

    number: int
    node: int
    logprobs: list[float] = field(default_factory=list)
    stuck: bool = False

    @property
    def mean(self) -> float:
        """The mean log-probability; 0 for a text without tokens."""
        return sum(self.logprobs) / max(1, len(self.logprobs))


def extended(lane: Lane, texts: list[Any]) -> Iterator[tuple[Any, float | None]]:
    """Draws one more token for each text, with one forward for all. A text has a `number` and its newest
    `node`, which is updated. Yields (text, the new token's log-probability, or None if the processors leave
    no token).
    """
    tips = list(dict.fromkeys(text.node for text in texts))  # at first all are at the same node
    logits = lane.score(tips)  # [N, V]
    offers = zip(lane.distribution(tips, logits), lane.process(logits, tips), strict=True)
    rows = dict(zip(tips, offers, strict=True))
    for text in texts:
        logprobs, scores = rows[text.node]
        if not scores.isfinite().any():
            yield text, None
            continue
        # each from a stream of its own; the first draws as plain sampling does
        number = [text.number] if text.number else []
        token = pick(lane, scores, ("sample", lane.tree.depths[text.node] + 1, *number))
        logprob = float(logprobs[token])
        text.node = lane.propose(text.node, token, logprob, slot=text.number)
        yield text, logprob


def step(lane: Lane, growing: list[Sample]) -> None:
    """Extends each sample that is not stuck by one token, with one forward for all."""
    for sample, logprob in extended(lane, growing):
        if logprob is None:
            sample.stuck = True
        else:
            sample.logprobs.append(logprob)


def grown(lane: Lane, samples: list[Sample]) -> Iterator[None]:
    """Extends all samples to their ends, one token per step; the last step is left to the caller."""
    growing = samples
    for position in range(1, lane.left + 1):
        step(lane, growing)
        growing = [sample for sample in growing if not sample.stuck]
        for sample in growing:
            if lane.ends(sample.node):
                lane.verdict(
                    sample.node,
                    "finished",
                    reason=f"sample {sample.number} ends after {many(position, 'token')}",
                )
        growing = [sample for sample in growing if not lane.ends(sample.node)]
        if not growing:
            return
        if position < lane.left:
            yield
    for sample in growing:
        lane.verdict(sample.node, "finished", reason=f"sample {sample.number} reaches the limit")


def take(lane: Lane, sample: Sample) -> None:
    """Commits a sample's text; ends the lane with a message if it was stuck."""
    if sample.stuck:
        lane.ended_by = NOTHING_LEFT
    if sample.logprobs:
        lane.commit(lane.tree.path(sample.node, above=lane.tip), list(sample.logprobs))
