"""Several samples that grow in parallel, one token of each per forward. Knows one lane."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from decoders.lane import Lane
from decoders.sampling.next_token import NOTHING_LEFT, pick
from decoders.trace.number_format import many


@dataclass
class Sample:
    """One sample: its number, newest node, the target's log-probability of each of its tokens; stuck: the
    processors leave it no further token.
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
    """Draws one token more for each text, all in one forward. A text has a `number` and its newest `node`,
    which moves on; with it comes the token's log-probability, None where the processors leave no token.
    """
    tips = list(dict.fromkeys(text.node for text in texts))  # at first they all stand in one place
    logits = lane.score(tips)  # [N, V]
    offers = zip(lane.distribution(tips, logits), lane.process(logits, tips), strict=True)
    rows = dict(zip(tips, offers, strict=True))
    for text in texts:
        logprobs, scores = rows[text.node]
        if not scores.isfinite().any():
            yield text, None
            continue
        # each by a stream of its own; the first draws as plain sampling
        number = [text.number] if text.number else []
        token = pick(lane, scores, ("sample", lane.tree.depths[text.node] + 1, *number))
        logprob = float(logprobs[token])
        text.node = lane.propose(text.node, token, logprob, slot=text.number)
        yield text, logprob


def step(lane: Lane, growing: list[Sample]) -> None:
    """One token more for each sample to which one is left, all in one forward."""
    for sample, logprob in extended(lane, growing):
        if logprob is None:
            sample.stuck = True
        else:
            sample.logprobs.append(logprob)


def grown(lane: Lane, samples: list[Sample]) -> Iterator[None]:
    """Lets all samples grow to their ends, a token per step; the last step is left open."""
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
    """Commits a sample's text; says so where the processors left it no further token."""
    if sample.stuck:
        lane.ended_by = NOTHING_LEFT
    if sample.logprobs:
        lane.commit(lane.tree.path(sample.node, above=lane.tip), list(sample.logprobs))
