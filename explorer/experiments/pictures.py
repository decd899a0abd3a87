"""Pictures of answers: curves, bars, heat maps, spreads, parallel coordinates, clouds of points, syntax
trees, texts side by side.

Each is plain data that is drawn elsewhere (visualizers/figures/experiments.py).
"""

from dataclasses import dataclass
from statistics import linear_regression


@dataclass(frozen=True)
class Line:
    """A curve of a chart: positions and values, None for missing ones; an interval may follow a value."""

    label: str
    points: list[list[float | None]]


@dataclass(frozen=True)
class Chart:
    """Curves over one x axis; with `log`, the x axis is logarithmic."""

    title: str
    x: str
    y: str
    lines: list[Line]
    log: bool = False
    kind: str = "curves"


@dataclass(frozen=True)
class Strip:
    """A row of a heat map: each column has one value per entry of `each`."""

    label: str
    each: list[str]
    values: list[list[float | None]]


@dataclass(frozen=True)
class Heat:
    """Strips of grey cells: white at `low`, darkest at `high`. `says`: the meaning of a cell."""

    title: str
    says: str
    columns: list[str]
    rows: list[Strip]
    low: float
    high: float
    kind: str = "heat"


@dataclass(frozen=True)
class TokenMap:
    """A grey cell for each row and token of a text, full at `high`. `says`: the meaning of a cell; `every`: a
    line is drawn after this many tokens, 0: none. A row without a label belongs to the one above it.
    """

    title: str
    says: str
    tokens: list[str]
    rows: list[str]
    values: list[list[float]]
    high: float = 1.0
    every: int = 0
    kind: str = "tokens"


@dataclass(frozen=True)
class Marked:
    """A row of a spread: one value per name."""

    label: str
    values: list[float]


@dataclass(frozen=True)
class Spread:
    """The spread of a few numbers in each row, on one axis; `names` of the numbers, at most three."""

    title: str
    x: str
    names: list[str]
    rows: list[Marked]
    kind: str = "spread"


@dataclass(frozen=True)
class Board:
    """Parallel coordinates: one axis per listed column of the answer's table, one line per row."""

    title: str
    axes: list[str]
    kind: str = "board"


@dataclass(frozen=True)
class Cloud:
    """The points of one question, with `groups` of them by problem, and the correlation of likelihood and
    utility.
    """

    label: str
    correlation: float | None
    groups: list[list[list[float]]]
    lines: list[list[float]]  # regression lines of groups that have one: [x0, y0, x1, y1]


@dataclass(frozen=True)
class Clouds:
    """One cloud per question, over the same x and y."""

    title: str
    x: str
    y: str
    parts: list[Cloud]
    kind: str = "clouds"


@dataclass(frozen=True)
class Passages:
    """Texts side by side, one row per beginning. A text is pieces [words, marks]; the marks are `again`
    (written before in this text) and `cited`. `says`: the meaning of the marks.
    """

    title: str
    says: str
    columns: list[str]
    begin: list[str]
    texts: list[list[list[list[str]]]]  # row -> column -> pieces
    kind: str = "passages"


@dataclass(frozen=True)
class Bars:
    """One bar for each of `names` at every position; `values`: one row per name."""

    title: str
    x: str
    y: str
    places: list[str]
    names: list[str]
    values: list[list[float]]
    kind: str = "bars"


@dataclass(frozen=True)
class Drawn:
    """A tree: its nodes from the top down, [label, first leaf, leaf after the last, 1 if it is wrong]."""

    label: str
    nodes: list[list[str | int]]


@dataclass(frozen=True)
class Trees:
    """Trees over the same leaves, one above the other. `says`: the meaning of the marks."""

    title: str
    says: str
    leaves: list[str]
    trees: list[Drawn]
    kind: str = "trees"


Picture = Chart | Heat | TokenMap | Spread | Board | Clouds | Passages | Bars | Trees


def fitted(points: list[list[float]]) -> list[float] | None:
    """The regression line of [x, y] points, from their first x to their last; None if all x or all y are
    equal.
    """
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    slope, start = linear_regression(xs, ys)
    low, high = min(xs), max(xs)
    return [round(value, 4) for value in (low, start + slope * low, high, start + slope * high)]
