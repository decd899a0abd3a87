"""A shape that grows while its source is confident: a chain, optionally with runners-up."""

from decoders.lane import Lane
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.fixed_trees import Guess, likeliest, open_ends, sampled
from decoders.speculative.interfaces import FIXED, SAMPLED, WITHOUT_REPLACEMENT, Draft, Shape

# How many tokens a position gets, by the probability of its most likely one: the less confident, the more.
GREEDY_WIDTHS = ((0.95, 3), (0.8, 5), (0.5, 8), (0.0, 10))
DRAWN_WIDTHS = ((0.95, 1), (0.8, 3), (0.5, 5), (0.0, 10))


def confident_chain(count: int, threshold: float, temperature: float, runners_up: bool = False) -> Shape:
    """A chain of at most `count` tokens that ends after the first position whose most likely token has a
    probability below `threshold`; that position's token is still drafted. `runners_up`: each position gets
    further tokens without children, as many as in SWIFT (Xia et al. 2024).

    Whether a position is drafted and how many tokens it gets is decided before a token is drawn there.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT if runners_up else SAMPLED
    widths = GREEDY_WIDTHS if temperature == 0.0 else DRAWN_WIDTHS

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        level = [lane.tip]
        for _ in range(min(count, max_levels)):
            scores = guess(level)  # [1, V]
            sure = float(scores.softmax(-1).max())
            width = next(n for limit, n in widths if sure > limit) if runners_up else 1
            if fill == FIXED:
                born = likeliest(lane, draft, level, scores, [width])
            else:
                born = sampled(lane, draft, level, distributions(lane, scores), [width], fill)
            level = open_ends(lane, born[:1])
            if sure < threshold or not level:
                return

    says = f"A chain grows until the most likely token has a probability below {threshold:g}."
    if runners_up:
        return Shape(
            grow,
            fill,
            "confident chain with runners-up",
            says + " The next best tokens are drafted beside it.",
        )
    return Shape(grow, fill, "confident chain", says)
