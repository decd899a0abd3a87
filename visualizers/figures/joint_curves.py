"""Curves shared by lanes: lanes with equal curves share one, long curves are rolling means.

Takes lanes as `visualizers.analysis.comparison.compare` gives them; draws nothing.
"""

import math
import textwrap
from collections.abc import Callable

from visualizers.figures.charts import NAME

READABLE = 120  # tokens that have room for a point each
SMALLEST, PARTS = 8, 32  # a rolling mean is over so many tokens at least, and over a part of the longest text
SAME = 5e-4  # numbers that are drawn alike


def rolling_window(longest: int) -> int:
    """How many tokens a point of a curve is the mean of; 1 where each has room of its own."""
    return 1 if longest <= READABLE else max(SMALLEST, longest // PARTS)


def rolling(values: list[float | None], window: int) -> list[float | None]:
    """Means over `window` values, centred, fewer at the ends; None where none of them is known."""
    if window == 1:
        return values
    before, means = window // 2, []
    for at in range(len(values)):
        near = values[max(0, at - before) : at - before + window]
        known = [value for value in near if value is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means


def alike(lanes: list[dict], drawn: Callable) -> list[list[dict]]:
    """Lanes in groups of one curve, in their order. drawn: the lists of a lane that make its curve."""
    groups: list[list[dict]] = []
    for lane in lanes:
        for group in groups:
            if all(map(close, drawn(group[0]), drawn(lane))):
                group.append(lane)
                break
        else:
            groups.append([lane])
    return groups


def close(one: list, other: list) -> bool:
    """Whether two lists hold the same words, and numbers that are drawn alike."""
    return len(one) == len(other) and all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, abs_tol=SAME))
        for a, b in zip(one, other, strict=True)
    )


def numbers(group: list[dict]) -> str:
    """The numbers of lanes: `1, 3`."""
    return ", ".join(str(lane["lane"]) for lane in group)


def label_of(group: list[dict]) -> str:
    """The label of one curve: those of its lanes, each once."""
    return " · ".join(dict.fromkeys(lane["label"] for lane in group))


def heading_of(group: list[dict]) -> str:
    """What stands above a panel: `2 Greedy`, or `lanes 1, 3`, with the label that they share."""
    labels = {lane["label"] for lane in group}
    shared = f" {label_of(group)}" if len(labels) == 1 else ""
    return textwrap.shorten(
        f"{'lanes ' if len(group) > 1 else ''}{numbers(group)}{shared}", NAME, placeholder="…"
    )
