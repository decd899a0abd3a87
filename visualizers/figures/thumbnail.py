"""A view of a trace as a thumbnail: marks as large as on the screen, without words, in a picture of a fixed
size, however long the run is.
"""

from dataclasses import replace

import plotly.graph_objects as go

from decoders.trace.trace import Trace
from visualizers.figures.scene_figure import (
    GAP,
    Picture,
    Plan,
    columns,
    first_view,
    panels,
    picture,
    placed,
    running_text,
    seen,
)
from visualizers.figures.svg import all_shapes, document, frame
from visualizers.figures.theme import theme

WIDE, HIGH = 200, 84  # pixels
LETTERS = 26  # in a line of running text, whose words are the picture
LETTER, LINES = 8, 86  # pixels of a letter there, and of the three lines that are shown


def thumbnail(trace: Trace, look: str = "light", view: str | None = None, step: int | None = None) -> str:
    """A view after `step` steps (None: all) as a small SVG; the strategy's first view if it is left out.

    Raises Refusal with one sentence for an unknown view or look.
    """
    shown, colours = picture(trace, view or first_view(trace), step), theme(look)
    drawn = seen(shown)
    if any(mark["kind"] == "chip" for mark in drawn):
        figure = running_text(trace, shown, drawn, colours, LETTERS)
        figure.update_layout(width=LETTER * LETTERS + figure.layout.margin.l + figure.layout.margin.r)
        return cut(figure, LINES)
    return cut(placed(trace, shown, small(shown), colours, step))


def cut(figure: go.Figure, most: float = 0) -> str:
    """Only the panels of a figure, without words unless they are its picture: `most` pixels of lines."""
    at = frame(figure)
    high = min(at.bottom - at.top, most or at.bottom - at.top)
    pieces = [piece for piece in all_shapes(at) if most or "<text" not in piece]
    drawn = document(figure, f"{at.left:g} {at.top:g} {at.right - at.left:g} {high:g}", pieces)
    return drawn.replace("<svg ", '<svg preserveAspectRatio="none" ', 1)  # as high and wide as its place


def small(shown: Picture) -> Plan:
    """A plan in which all columns and rows have the size of a thumbnail, whatever their words need."""
    x = columns(shown.head, seen(shown))
    column = WIDE / (x[1] - x[0])
    rooms, heights = panels(shown.head, shown.marks, column, x, HIGH)
    share = max(HIGH - GAP * (len(heights) - 1), HIGH / 3) / sum(heights.values())
    rooms = {name: (replace(room, row=room.row * share), panel) for name, (room, panel) in rooms.items()}
    return Plan(x, column, rooms, {name: high * share for name, high in heights.items()})
