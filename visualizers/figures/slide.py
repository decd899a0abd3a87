"""A view of a whole run as a slide of 16:9: its columns broken into lines, as a score is, so that letters
are as large as they can be. Knows the figures of `scene_figure`.
"""

import math
from html import escape
from textwrap import shorten

import plotly.graph_objects as go

from visualizers.figures.svg import EDGE, Frame, axes, clean, frame, legend, note, scale, shapes, text
from visualizers.figures.theme import SANS

WIDE, HIGH, MARGIN = 1600, 900, 28
INNER = WIDE - 2 * MARGIN
TOP, FOOT = 158, 66  # pixels for title, question and legend, and for the two sentences below
AROUND, TICKS, BETWEEN = 6, 22, 12  # pixels of a figure over its panels and under them, and between two lines
MOST_LINES, MOST_SCALE, LEGEND = 8, 2.6, 1.5
LOWEST, LARGEST = 0.75, 2.0  # times their own size, of panels
LETTER, SENTENCE = 0.56, 150  # width of a letter by its height, on average; letters of the sentence


def slide(figure: go.Figure, foot: str = "") -> str:
    """The whole figure as an SVG of 1600 x 900; `foot`: a line below it."""
    layout = figure.layout
    lines, size, layout.width, layout.height = best(frame(figure))
    size = min(size, INNER / widest(frame(figure), lines))
    at, ink, soft = (
        frame(figure),
        layout.template.layout.font.color,
        layout.template.layout.xaxis.tickfont.color,
    )
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
        *broken(at, lines, size),
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
    """A line of words, smaller where it would be too long."""
    letters = max(1, len(marked or ""))
    return text(marked, MARGIN, y, min(size, INNER / LETTER / letters), colour)


def broken(at: Frame, lines: int, size: float) -> list[str]:
    """The lines of the run below each other, each with the words at the left of its panels."""
    before, found = gutter(at), []
    for number, (start, end) in enumerate(windows(at, lines)):
        y = TOP + number * (size * height(at) + BETWEEN)
        if number and before:
            found.append(cut(at, 0, before, MARGIN, y, size))
        found.append(cut(at, start, end, MARGIN + size * before * bool(number), y, size))
    return found


def cut(at: Frame, start: float, end: float, x: float, y: float, size: float) -> str:
    """What the figure has between two places, as a picture of its own."""
    wide, top = end - start, at.top - AROUND
    return (
        f'<svg x="{x:.1f}" y="{y:.1f}" width="{size * wide:.1f}" height="{size * height(at):.1f}" '
        f'viewBox="{start:.1f} {top:.1f} {wide:.1f} {height(at):.1f}"><use href="#run"/></svg>'
    )


def height(at: Frame) -> float:
    """The pixels of a line of the run: its panels and the numbers under them."""
    return at.bottom - at.top + AROUND + TICKS


def gutter(at: Frame) -> float:
    """The pixels left of the panels, where words stand there."""
    return at.left if at.left > 2 * EDGE else 0


def best(at: Frame) -> tuple[int, float, float, float]:
    """How many lines make the letters largest, how large (their share of the figure's), and how wide and high
    the figure is then: its panels can be somewhat larger or lower than it draws them.
    """
    layout, panels = at.figure.layout, at.bottom - at.top

    def fit(lines: int) -> tuple[float, float]:
        room = (HIGH - TOP - FOOT - (lines - 1) * BETWEEN) / lines
        size = min(INNER / widest(at, lines), room / (LOWEST * panels + AROUND + TICKS), MOST_SCALE)
        return size, min(room / size - AROUND - TICKS, (1 if running_text else LARGEST) * panels)

    running_text = layout.xaxis.visible is False and layout.yaxis.visible is False
    lines = 1 if running_text else max(range(1, MOST_LINES + 1), key=lambda lines: (fit(lines)[0], -lines))
    size, high = fit(lines)
    spare = min((INNER / size - widest(at, lines)) * lines, (LARGEST - 1) * (at.right - at.left))
    return lines, size, layout.width + spare * (not running_text), layout.height + high - panels


def widest(at: Frame, lines: int) -> float:
    """The pixels of the longest line."""
    return max(gutter(at) * bool(i) + end - start for i, (start, end) in enumerate(windows(at, lines)))


def windows(at: Frame, lines: int) -> list[tuple[float, float]]:
    """From where to where each line goes; it ends between two columns, where there are some."""
    low, unit = at.scales["x"]
    columns = (at.right - at.left) / unit
    every = math.ceil(columns / lines) if unit > 2 * EDGE else columns / lines
    edges = [at.x(low) + (low_edge(low) + every * i) * unit for i in range(1, lines)]
    edges = [edge for edge in edges if edge < at.right - unit / 2]
    return list(zip([0, *edges], [*edges, float(at.figure.layout.width)], strict=True))


def low_edge(low: float) -> float:
    """From the left end of x to where its first column begins, in columns."""
    return math.ceil(low - 0.5) + 0.5 - low
