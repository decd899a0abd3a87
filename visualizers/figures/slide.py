"""A view of a whole run as a 16:9 slide: its columns broken into lines, like a musical score, so that letters
are as large as possible. In views whose rounds descend like stairs, a line ends where a round does, it shows
only its own rounds, and short lines are side by side.
"""

from dataclasses import dataclass, replace
from html import escape
from textwrap import shorten

import plotly.graph_objects as go

from visualizers.figures.run_lines import AROUND, TICKS, Line, bands, stairs, windows
from visualizers.figures.svg import EDGE, Frame, axes, clean, frame, legend, note, scale, shapes, text
from visualizers.figures.theme import SANS

WIDE, HIGH, MARGIN = 1600, 900, 28
INNER = WIDE - 2 * MARGIN
TOP, FOOT = 158, 66  # pixels for title, question and legend, and for the two sentences below
BETWEEN = 12  # pixels between two lines
MAX_LINES, MAX_SCALE, LEGEND = 8, 2.6, 1.5
MAX_SIDE_BY_SIDE, ASIDE = 4, 24  # maximum lines of stairs side by side, and pixels between them
LOWEST, LARGEST = 0.75, 2.0  # minimum and maximum factor by which panels are stretched
LETTER, SENTENCE = 0.56, 150  # mean width of a letter relative to its height; characters of the caption


@dataclass(frozen=True)
class Plan:
    """How a run is broken into lines: their number, how many are side by side, and the drawing's scale."""

    lines: int
    side_by_side: int
    size: float


def slide(figure: go.Figure, foot: str = "") -> str:
    """The whole figure as an SVG of 1600 x 900; `foot`: a line of text at the bottom."""
    layout = figure.layout
    plan, layout.width, layout.height = best(frame(figure))
    at, ink, soft = (
        frame(figure),
        layout.template.layout.font.color,
        layout.template.layout.xaxis.tickfont.color,
    )
    size = min(plan.size, INNER / across(at, plan.lines, plan.side_by_side))
    caption = (layout.meta or {}).get("caption", "")
    notes = [one for one in layout.annotations if not (one.yref == "paper" and one.y == 0)]
    content = [piece for axis in axes(figure) for piece in scale(axis, at)]
    content += [piece for trace in figure.data for piece in shapes(trace, at)]
    content += [note(one, at) for one in notes]
    drawn = [
        f'<defs><g id="run">{"".join(content)}</g></defs>',
        fitted(layout.title.text, 52, 34, ink),
        fitted(layout.title.subtitle.text, 86, 20, soft),
        f'<g transform="translate({MARGIN - EDGE} 122) scale({LEGEND})">',
        *legend(figure, EDGE, 0, INNER / LEGEND),
        "</g>",
        *broken(at, replace(plan, size=size)),
        fitted(escape(shorten(caption, SENTENCE, placeholder=" …")), HIGH - 44, 19, soft),
        fitted(escape(foot), HIGH - 16, 19, ink),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" '
        f'font-family="{escape(SANS)}"><desc>{clean(caption)}</desc>'
        f'<rect width="{WIDE}" height="{HIGH}" fill="{layout.template.layout.paper_bgcolor}"/>'
        f"{''.join(drawn)}</svg>\n"
    )


def fitted(marked: str | None, y: float, size: float, colour: str) -> str:
    """A line of text, in a smaller size if it would be too long."""
    letters = max(1, len(marked or ""))
    return text(marked, MARGIN, y, min(size, INNER / LETTER / letters), colour)


def broken(at: Frame, plan: Plan) -> list[str]:
    """The lines of the run as SVG pieces, each with the words at the left of its panels."""
    before, size, drawn, y = gutter(at), plan.size, [], TOP
    for number, row in enumerate(rows_of_lines(at, plan.lines, plan.side_by_side)):
        for place, line in enumerate(row):
            x = MARGIN + place * (size * widest(at, plan.lines) + ASIDE)
            low = y
            for top, bottom in bands(at, line):
                if before and (number or place):
                    drawn.append(cut(at, (0, before), (top, bottom), (x, low), size))
                shift = size * before * bool(number or place)
                drawn.append(cut(at, (line.start, line.end), (top, bottom), (x + shift, low), size))
                low += size * (bottom - top)
        y += size * max(height(at, line) for line in row) + BETWEEN
    return drawn


def cut(
    at: Frame,
    columns: tuple[float, float],
    band: tuple[float, float],
    corner: tuple[float, float],
    size: float,
) -> str:
    """The part of the figure between two x and two y pixels, as a nested SVG."""
    wide, tall = columns[1] - columns[0], band[1] - band[0]
    return (
        f'<svg x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size * wide:.1f}" height="{size * tall:.1f}" '
        f'viewBox="{columns[0]:.1f} {band[0]:.1f} {wide:.1f} {tall:.1f}"><use href="#run"/></svg>'
    )


def height(at: Frame, line: Line) -> float:
    """The height of a line of the run in pixels: its panels and the numbers below them."""
    return sum(bottom - top for top, bottom in bands(at, line))


def gutter(at: Frame) -> float:
    """The pixels left of the panels if there are words; otherwise 0."""
    return at.left if at.left > 2 * EDGE else 0


def best(at: Frame) -> tuple[Plan, float, float]:
    """(the plan with the largest letters, the figure's width and height for it); panels may be stretched."""
    layout, panels = at.figure.layout, at.bottom - at.top

    def fit(lines: int, side_by_side: int) -> tuple[float, float]:
        """(scale of the drawing, factor by which panels are stretched vertically)."""
        rows = rows_of_lines(at, lines, side_by_side)
        words = len(rows) * (AROUND + TICKS)
        high = sum(max(height(at, line) for line in row) for row in rows) - words
        room = HIGH - TOP - FOOT - (len(rows) - 1) * BETWEEN
        size = min(INNER / across(at, lines, side_by_side), room / (LOWEST * high + words), MAX_SCALE)
        return size, min((room / size - words) / high, 1 if running_text else LARGEST)

    running_text = layout.xaxis.visible is False and layout.yaxis.visible is False
    choices = [(lines, 1) for lines in range(1, 1 if running_text else MAX_LINES + 1)] or [(1, 1)]
    if stairs(at):
        choices += [
            (n * side_by_side, side_by_side)
            for side_by_side in range(2, MAX_SIDE_BY_SIDE + 1)
            for n in range(1, MAX_LINES + 1)
        ]
    lines, side_by_side = max(choices, key=lambda choice: (fit(*choice)[0], -choice[0]))
    size, taller = fit(lines, side_by_side)
    spare = min(
        (INNER / size - across(at, lines, side_by_side)) * lines / side_by_side,
        (LARGEST - 1) * (at.right - at.left),
    )
    wide = layout.width + spare * (not running_text)
    return Plan(lines, side_by_side, size), wide, layout.height + (taller - 1) * panels


def widest(at: Frame, lines: int) -> float:
    """The width of the longest line in pixels."""
    return max(gutter(at) * bool(i) + line.end - line.start for i, line in enumerate(windows(at, lines)))


def across(at: Frame, lines: int, side_by_side: int) -> float:
    """The width in pixels of the lines that are side by side, including the gaps between them."""
    return side_by_side * widest(at, lines) * INNER / (INNER - (side_by_side - 1) * ASIDE)


def rows_of_lines(at: Frame, lines: int, side_by_side: int) -> list[list[Line]]:
    """The lines in reading order, grouped by those that are side by side."""
    shown = windows(at, lines)
    return [shown[i : i + side_by_side] for i in range(0, len(shown), side_by_side)]
