"""Prepares curves of lanes: lanes with equal curves share one, and long curves become rolling means.

Takes the lanes of `visualizers.analysis.comparison.compare`; draws nothing.
"""

import math
import textwrap
from collections.abc import Callable

from visualizers.figures.charts import NAME

READABLE = 120  # maximum number of tokens drawn as a point each
SMALLEST, PARTS = 8, 32  # minimum window of a rolling mean; windows in the longest text
SAME = 5e-4  # numbers closer than this count as equal


def rolling_window(longest: int) -> int:
    """The number of tokens averaged by each point of a curve; 1 if each token has room for its own point."""
    return 1 if longest <= READABLE else max(SMALLEST, longest // PARTS)


def rolling(values: list[float | None], window: int) -> list[float | None]:
    """Centred means over `window` values (fewer at the ends); None where no value is known."""
    if window == 1:
        return values
    before, means = window // 2, []
    for at in range(len(values)):
        near = values[max(0, at - before) : at - before + window]
        known = [value for value in near if value is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means


def alike(lanes: list[dict], drawn: Callable) -> list[list[dict]]:
    """Groups of lanes with equal curves, in order. drawn(lane): the lists that make up its curve."""
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
    """Whether two lists have equal texts and numbers that differ by less than SAME."""
    return len(one) == len(other) and all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, abs_tol=SAME))
        for a, b in zip(one, other, strict=True)
    )


def numbers(group: list[dict]) -> str:
    """The lanes' numbers: `1, 3`."""
    return ", ".join(str(lane["lane"]) for lane in group)


def label_of(group: list[dict]) -> str:
    """The label of a curve: the distinct labels of its lanes."""
    return " · ".join(dict.fromkeys(lane["label"] for lane in group))


def heading_of(group: list[dict]) -> str:
    """The heading of a panel: `2 Greedy`, or `lanes 1, 3`, with the label that they share."""
    labels = {lane["label"] for lane in group}
    shared = f" {label_of(group)}" if len(labels) == 1 else ""
    return textwrap.shorten(
        f"{'lanes ' if len(group) > 1 else ''}{numbers(group)}{shared}", NAME, placeholder="…"
    )
