"""Whether a drafter's confidence can be believed: the share accepted among tokens of similar confidence."""

import math
from collections.abc import Sequence
from statistics import fmean

from visualizers.analysis.lane_stats import ACCEPTED, REJECTED, Drafted, Round

BINS = 5  # of a diagram; few, since a lane tests few tokens
Z = 1.959964  # of a 95 % interval
OWN, PREDICTED = ("q", "the draft's own probability"), ("predicted", "the predicted acceptance")
Pairs = Sequence[tuple[float, bool]]  # predicted probability of acceptance, and whether it was accepted


def reliability(rounds: list[Round]) -> list[dict]:
    """A reliability diagram (Murphy & Winkler 1977) for each number that predicts acceptance, of the tested
    tokens that have it: `{short, name, error, bins}`, see `binned` and `calibration_error`.
    """
    own = [(d.probability, d.accepted) for d in tested(rounds) if d.probability is not None]
    diagrams = {OWN: own, PREDICTED: predictions(rounds)}
    return [
        {"short": short, "name": name, "error": calibration_error(pairs, BINS), "bins": binned(pairs, BINS)}
        for (short, name), pairs in diagrams.items()
        if pairs
    ]


def tested(rounds: list[Round]) -> list[Drafted]:
    """The drafted tokens that were accepted or rejected."""
    return [d for made in rounds for d in made.drafted if d.fate in (ACCEPTED, REJECTED)]


def predictions(rounds: list[Round]) -> list[tuple[float, bool]]:
    """(predicted acceptance, accepted) of the tested tokens that have a prediction."""
    return [(d.predicted, d.accepted) for d in tested(rounds) if d.predicted is not None]


def binned(pairs: Pairs, count: int) -> list[dict]:
    """`{low, high, mean, tested, accepted, share, share_low, share_high}` of `count` equally wide bins, empty
    ones left out: `mean` of the prediction, `share_low` to `share_high` Wilson's interval of `share`.
    """
    bins = []
    for i in range(count):
        here = [(x, came) for x, came in pairs if min(int(count * x), count - 1) == i]
        if here:
            passed = sum(came for _, came in here)
            low, high = wilson(passed, len(here))
            bins.append(
                {
                    "low": i / count,
                    "high": (i + 1) / count,
                    "mean": fmean(x for x, _ in here),
                    "tested": len(here),
                    "accepted": passed,
                    "share": passed / len(here),
                    "share_low": low,
                    "share_high": high,
                }
            )
    return bins


def calibration_error(pairs: Pairs, count: int) -> float:
    """How far predictions are from what happened: the mean of |share - mean| over `count` bins, weighted by
    their sizes (Naeini et al. 2015, ECE).
    """
    return sum(b["tested"] * abs(b["share"] - b["mean"]) for b in binned(pairs, count)) / len(pairs)


def wilson(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share (Wilson 1927)."""
    share, spread = right / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
