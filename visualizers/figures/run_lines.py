"""Breaks a run into lines, like a musical score. A line ends where a round of the draft ends, in views whose
rounds descend like stairs, and between two columns in all others. Slides and figures for print use it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from visualizers.figures.svg import EDGE, Frame

AROUND, TICKS = 6, 22  # pixels shown above and below panels
MARGINAL = 0.7  # columns; a last line that would be narrower than this is dropped


@dataclass(frozen=True)
class Line:
    """A part of a run: its columns from `start` to `end` in pixels of the figure, and the rows of the stairs
    that it shows, from number `first` up to, not including, `last` (both 0 where there are no stairs).
    """

    start: float
    end: float
    first: int = 0
    last: int = 0


def stairs(at: Frame) -> dict | None:
    """Axis and rows of the stairs of a figure, None for other views."""
    return (at.figure.layout.meta or {}).get("stairs")


def points(at: Frame, axis: str) -> Iterator[tuple[float, float]]:
    """The points of all traces in a panel, in pixels."""
    for trace in at.figure.data:
        if (trace.yaxis or "y") == axis:
            places = zip(trace.x, trace.y, strict=True)
            yield from ((at.x(x), at.y(y, axis)) for x, y in places if x is not None)


def rounds(at: Frame) -> list[Line]:
    """The rounds of a figure with stairs, one line each, whole columns wide: a round ends with the last token
    that it drafted, so it may share columns with the next. A row without marks belongs to the round before.
    """
    found = stairs(at)
    if not found:
        return []
    rows = [(at.y(y0, found["axis"]), at.y(y1, found["axis"])) for y0, y1 in found["rows"]]
    inside: list[list[float]] = [[] for _ in rows]
    for x, y in points(at, found["axis"]):
        for number, (top, bottom) in enumerate(rows):
            if top < y < bottom:
                inside[number].append(x)
    lines: list[Line] = []
    for number, places in enumerate(inside):
        if places:
            lines.append(
                Line(column_edge(at, min(places), -1), column_edge(at, max(places), 1), number, number + 1)
            )
        elif lines:
            lines[-1] = Line(lines[-1].start, lines[-1].end, lines[-1].first, number + 1)
    return lines


def column_edge(at: Frame, x: float, side: int) -> float:
    """The edge of the column at a pixel x, to its left (-1) or its right (1)."""
    low, unit = at.scales["x"]
    inward = (x - at.left) / unit + low - side * 0.02  # what ends at an edge is inside
    return at.x(round(inward) + side / 2)


def together(lines: list[Line]) -> Line:
    """Neighbouring rounds as one line."""
    start, end = min(line.start for line in lines), max(line.end for line in lines)
    return Line(start, end, lines[0].first, lines[-1].last)


def packed(lines: list[Line], width: float) -> list[Line]:
    """Neighbouring rounds in as few lines of `width` pixels as they fit in; a longer round has its own."""
    shown: list[list[Line]] = []
    for line in lines:
        whole = together([*shown[-1], line]) if shown else line
        if shown and whole.end - whole.start <= width + 0.01:
            shown[-1].append(line)
        else:
            shown.append([line])
    return [together(some) for some in shown]


def by_rounds(at: Frame, most: int) -> list[Line]:
    """Rounds in at most so many lines, which are as short as possible; the outer ones reach to the edges."""
    parts = rounds(at)
    spans = {
        whole.end - whole.start
        for i in range(len(parts))
        for j in range(i, len(parts))
        for whole in [together(parts[i : j + 1])]
    }
    shown = next(lines for width in sorted(spans) if len(lines := packed(parts, width)) <= most)
    shown[0] = Line(0, shown[0].end, 0, shown[0].last)
    shown[-1] = Line(shown[-1].start, float(at.figure.layout.width), shown[-1].first, shown[-1].last)
    if len(shown) == 1:
        shown = [Line(0, float(at.figure.layout.width), 0, shown[0].last)]
    return shown


def by_columns(at: Frame, lines: int) -> list[Line]:
    """So many lines of the same number of columns, or fewer."""
    low, unit = at.scales["x"]
    columns = (at.right - at.left) / unit
    every = math.ceil(columns / lines) if unit > 2 * EDGE else columns / lines
    edges = [at.x(low) + (low_edge(low) + every * i) * unit for i in range(1, lines)]
    edges = [edge for edge in edges if edge < at.right - MARGINAL * unit]
    ends = zip([0, *edges], [*edges, float(at.figure.layout.width)], strict=True)
    return [Line(start, end) for start, end in ends]


def windows(at: Frame, lines: int) -> list[Line]:
    """A run in so many lines, or fewer."""
    return by_rounds(at, lines) if rounds(at) else by_columns(at, lines)


def low_edge(low: float) -> float:
    """The distance in columns from the left end of x to the start of its first column."""
    return math.ceil(low - 0.5) + 0.5 - low


def bands(at: Frame, line: Line) -> list[tuple[float, float]]:
    """The vertical ranges (top, bottom) of the figure that a line shows: all panels and the numbers below
    them, but of stairs only the line's own rows.
    """
    top, bottom = at.top - AROUND, at.bottom + TICKS
    if not line.last:
        return [(top, bottom)]
    axis = at.figure.layout.meta["stairs"]["axis"]
    head = at.y(at.figure.layout[axis.replace("y", "yaxis")].range[1], axis)
    return [(top, head), row_band(at, line), (at.bottom, bottom)]


def row_band(at: Frame, line: Line) -> tuple[float, float]:
    """Top and bottom of a line's rows, without empty room below their last mark."""
    found = at.figure.layout.meta["stairs"]
    axis, rows = found["axis"], found["rows"]
    high, low = at.y(rows[line.first][0], axis), at.y(rows[line.last - 1][1], axis)
    foot = max((y + AROUND for _, y in points(at, axis) if high < y < low), default=low)
    return high, min(foot, low)
