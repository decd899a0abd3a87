"""Whether a drafter's confidence can be believed: the share accepted among tokens of similar confidence.

Knows drafted tokens and their fates; nothing of strategies or of how anything is drawn.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from visualizers.lane_facts import ACCEPTED, REJECTED, Round

BINS = 5
Z = 1.959964  # of 95 in 100
OWN, FORETOLD = ("q", "the draft's own probability"), ("foretold", "the acceptance that was foretold")


def reliability(rounds: list[Round]) -> list[dict]:
    """A reliability diagram (Murphy & Winkler 1977) for each number that foretells acceptance, of the tested
    tokens that have it: `{short, name, error,
    bins: [{low, high, mean, tested, accepted, share, least, most}]}`.

    Bins are equally wide, empty ones left out; `mean` of the foretelling number, `least` to `most` Wilson's
    interval of the share. error: the mean of |share - mean|, weighted by `tested` (Naeini et al. 2015, ECE).
    """
    tested = [d for made in rounds for d in made.drafted if d.fate in (ACCEPTED, REJECTED)]
    told = {
        OWN: [(d.chance, d.accepted) for d in tested if d.chance is not None],
        FORETOLD: [(d.foretold, d.accepted) for d in tested if d.foretold is not None],
    }
    return [diagram(*names, pairs) for names, pairs in told.items() if pairs]


def diagram(short: str, name: str, pairs: Sequence[tuple[float, bool]]) -> dict:
    """One diagram, of pairs (foretold, accepted)."""
    bins = []
    for i in range(BINS):
        here = [(x, passed) for x, passed in pairs if min(int(BINS * x), BINS - 1) == i]
        if here:
            tested, passed = len(here), sum(accepted for _, accepted in here)
            least, most = wilson(passed, tested)
            bins.append({
                "low": i / BINS, "high": (i + 1) / BINS, "mean": fmean(x for x, _ in here),
                "tested": tested, "accepted": passed, "share": passed / tested, "least": least, "most": most,
            })  # fmt: skip
    error = sum(b["tested"] * abs(b["share"] - b["mean"]) for b in bins) / len(pairs)
    return {"short": short, "name": name, "error": error, "bins": bins}


def wilson(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval for a share, 95 in 100 (Wilson 1927)."""
    share, spread = right / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
