"""CaPE, the proposal expansion of GliDe (Du et al. 2024): a chain of the most likely tokens, with more
siblings at a depth the less confident the source was there. Siblings are leaves.
"""

from decoders.lane import Lane
from decoders.speculative.drafters.fixed_trees import Guess, likeliest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Shape
from decoders.trace.scores import ScoreName

COUNTS = (8, 8, 8, 6, 6, 6, 4, 4, 2, 2, 2)  # by tenths of the top probability; the top token included


def tokens_of(confidence: float) -> int:
    """How many tokens a position gets whose most likely one has this probability."""
    return COUNTS[int(10 * min(max(confidence, 0.0), 1.0) + 1e-9)]


def confidence_siblings(count: int) -> Shape:
    """A chain of at most `count` tokens with siblings by `tokens_of`. Nothing is drawn."""

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        node = lane.tip
        for _ in range(min(count, max_levels)):
            scores = guess([node])  # [1, V]
            confidence = float(scores.softmax(-1).max())
            born = likeliest(lane, draft, [node], scores, [tokens_of(confidence)])
            lane.record_measure(born[0], ScoreName.CONFIDENCE, confidence, siblings=float(len(born) - 1))
            node = born[0]
            if not open_ends(lane, [node]):
                break

    return Shape(
        grow,
        FIXED,
        "chain with siblings",
        "It drafts a chain of the most likely tokens, with more siblings where it is less confident.",
    )
