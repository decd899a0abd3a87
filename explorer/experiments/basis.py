"""On what a finding stands: what was sampled, how often something was trained, and a 95% interval for each
difference that the finding claims.

The words that a finding needs beside it follow from this: one training, a single run, or a difference that
chance alone could have made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean, stdev

from visualizers.analysis.calibration import wilson

FAR_ABOVE = "the loss is far above that of the target that wrote the text"  # for `Basis.unfinished`
NORMAL = 1.96  # standard errors to either side of a 95% interval of many cases


@dataclass(frozen=True)
class Compared:
    """A difference that a finding claims, with its 95% interval."""

    what: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Basis:
    """On what a finding stands.

    units: what was sampled -> how many, such as {"prompts": 6}. trained: how often each model of the
    comparison was trained, with another seed each time; None where the experiment trains nothing. unfinished:
    what shows that this training had not converged, "" where nothing does. exact: why there is nothing to
    sample, "" otherwise. compared: the differences that the finding claims.
    """

    units: dict[str, int] = field(default_factory=dict)
    trained: int | None = None
    unfinished: str = ""
    exact: str = ""
    compared: list[Compared] = field(default_factory=list)


def clear(one: dict) -> bool:
    """Whether the interval of a stored difference excludes zero."""
    return one["low"] > 0 or one["high"] < 0


def worded(finding: str, basis: dict) -> str:
    """The finding as people read it: with what it does not stand on, before its full stop."""
    unclear = [one["what"] for one in basis["compared"] if not clear(one)]
    notes = []
    if not basis["exact"] and not basis["compared"]:
        notes.append("a single run, without intervals")
    elif basis["trained"] == 1:
        notes.append("trained once")
    if basis["unfinished"]:
        notes.append("before training had converged")
    if unclear:
        notes.append(f"not distinguishable: {', '.join(unclear)}")
    return f"{finding.removesuffix('.')} ({'; '.join(notes)})." if notes else finding


def says(basis: dict) -> str:
    """What the finding stands on, in sentences: what was sampled, how often was trained, the intervals."""
    if basis["exact"]:
        return f"Exact: {basis['exact']}."
    units = [f"{many:,} {noun if many > 1 else one_of(noun)}" for noun, many in basis["units"].items()]
    parts = [f"It stands on {', '.join(units)}."]
    if basis["trained"] == 1:
        parts.append("Trained once: with another seed it could come out differently.")
    elif basis["trained"]:
        parts.append(f"Trained {basis['trained']} times, each with another seed.")
    if basis["unfinished"]:
        parts.append(f"Training had not converged: {basis['unfinished']}.")
    elif basis["trained"]:
        parts.append("Whether longer training changes it was not tried.")
    intervals = [f"{one['what']} {spoken(one)}" for one in basis["compared"]]
    parts.append(f"95% intervals: {'; '.join(intervals)}." if intervals else "There are no intervals.")
    return " ".join(parts)


def one_of(noun: str) -> str:
    """`problem of each kind` from `problems of each kind`."""
    return re.sub(r"s\b", "", noun, count=1)


def spoken(one: dict) -> str:
    """`+0.31 (+0.12 to +0.50)`, with as many decimals as a small difference needs."""
    difference, low, high = one["difference"], one["low"], one["high"]
    digits = 3 if max(abs(difference), high - low) < 0.1 else 2
    signed = [f"{value:+.{digits}f}".replace("-", "−") for value in (difference, low, high)]
    return f"{signed[0]} ({signed[1]} to {signed[2]})"


def as_measured(answer: dict) -> list[Compared]:
    """The differences that the run itself measured."""
    return [Compared(**one) for one in answer["compared"]]


def measured(basis: Basis, answer: dict) -> Basis:
    """A declared basis, with the differences that the run measured."""
    return replace(basis, compared=as_measured(answer))


# ---- intervals ---------------------------------------------------------------------------------------------


def by_pairs(what: str, gaps: Sequence[float]) -> Compared:
    """The mean of two or more paired differences, one per prompt, text or seed, with Student's t."""
    from scipy.stats import t  # takes two seconds to import

    gap, error = fmean(gaps), stdev(gaps) / sqrt(len(gaps))
    reach = float(t.ppf(0.975, len(gaps) - 1)) * error
    return Compared(what, gap, gap - reach, gap + reach)


def by_error(what: str, gap: float, error: float) -> Compared:
    """A difference over many cases, of which a table holds the standard error."""
    return Compared(what, gap, gap - NORMAL * error, gap + NORMAL * error)


def by_wins(what: str, won: int, lost: int, cases: int) -> Compared:
    """The difference of two shares on the same cases, of which `won` are right only in the first way and
    `lost` only in the second (Agresti and Min 2005: half a case is added to each kind of pair).
    """
    many = cases + 2
    gap = (won - lost) / many
    reach = NORMAL * sqrt(won + lost + 1 - many * gap**2) / many
    return Compared(what, (won - lost) / cases, gap - reach, gap + reach)


def by_shares(what: str, share: float, other: float, cases: int, others: int | None = None) -> Compared:
    """The difference of two shares as if they were of independent cases (Newcombe 1998): wider than for the
    same cases, where which were right in both ways is not known. others: cases of the other share, if not as
    many.
    """
    others = cases if others is None else others
    low, high = wilson(round(share * cases), cases)
    under, upper = wilson(round(other * others), others)
    gap = share - other
    return Compared(
        what,
        gap,
        gap - sqrt((share - low) ** 2 + (upper - other) ** 2),
        gap + sqrt((high - share) ** 2 + (other - under) ** 2),
    )
