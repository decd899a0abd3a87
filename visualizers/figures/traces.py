"""Helpers of drawers: one Plotly trace for all marks of one style, which are one path in the player.

Every mark with a position is one point with its hover text and its id (`customdata`), whatever shape is drawn
there; `meta` has its kind, state and fill.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from visualizers.figures.theme import MONO
from visualizers.figures.wrapping import cut_short
from visualizers.scene.marks import Op


@dataclass(frozen=True)
class Room:
    """What the marks of one panel are drawn into: `axis` ("y", "y2", ...), its scale from `y0` at the top to
    `y1`, pixels of a column and of a row, the columns that the figure shows, and whether the notes of nodes
    stand below them instead of beside them.
    """

    axis: str
    y0: float
    y1: float
    column: float
    row: float
    x: tuple[float, float]
    notes_under: bool = False


def scatter(**fields: object) -> dict:
    """A scatter trace as plain data. A figure that is given a `go.Scatter` would copy and check it again."""
    return {"type": "scatter", **fields}


def alike(marks: list[Op], look: Callable[[Op], tuple]) -> list[tuple[tuple, list[Op]]]:
    """Marks grouped by style, in the order in which the styles first occur."""
    groups: dict[tuple, list[Op]] = {}
    for mark in marks:
        groups.setdefault(look(mark), []).append(mark)
    return list(groups.items())


def kind_of(mark: Op) -> dict:
    """The kind, state and fill of marks of one style, for `meta`; symbols have a glyph as fill."""
    fill = mark.get("glyph") if mark["kind"] == "symbol" else mark.get("fill")
    return {"kind": mark["kind"], "state": mark.get("state") or mark.get("role"), "fill": fill}


def points(marks: list[Op], room: Room, at: Callable[[Op], tuple[float, float]], **look: object) -> dict:
    """One point per mark, with its hover text."""
    x, y = zip(*(at(mark) for mark in marks), strict=True)
    hovers = ["<br>".join(map(plain, mark.get("hover") or [mark.get("text") or ""])) for mark in marks]
    return scatter(
        x=x,
        y=y,
        yaxis=room.axis,
        customdata=[mark["id"] for mark in marks],
        hovertext=hovers,
        hoverinfo="text" if any(hovers) else "skip",
        showlegend=False,
        meta=kind_of(marks[0]),
        **look,
    )


def lines(pieces: Iterator[list[tuple[float, float]]], room: Room, **look: object) -> dict:
    """Polylines or polygons as one trace, separated by gaps."""
    x: list[float | None] = []
    y: list[float | None] = []
    for piece in pieces:
        x += [*(point[0] for point in piece), None]
        y += [*(point[1] for point in piece), None]
    return scatter(
        x=x[:-1], y=y[:-1], yaxis=room.axis, mode="lines", hoverinfo="skip", showlegend=False, **look
    )


def box(x0: float, x1: float, y0: float, y1: float) -> list[tuple[float, float]]:
    """The corners of a rectangle, closed."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]


def unseen(marks: list[Op], room: Room, at: Callable[[Op], tuple[float, float]]) -> dict:
    """Invisible points for hovering over shapes that another trace draws."""
    return points(marks, room, at, mode="markers", marker={"opacity": 0, "size": 14})


def words(
    texts: list[tuple[float, float, str] | tuple[float, float, str, str]],
    room: Room,
    colour: str,
    size: float,
    position: str = "middle center",
    face: str = MONO,
) -> dict:
    """Words at places, line feeds in them as breaks; nothing happens when they are pointed at. `customdata`
    is the whole text where a fourth entry says that it is cut.
    """
    whole = [one[3] if len(one) > 3 and cut_short(one[2], one[3]) else "" for one in texts]
    return scatter(
        x=[one[0] for one in texts],
        y=[one[1] for one in texts],
        text=[plain(one[2]).replace("\n", "<br>") for one in texts],
        customdata=whole if any(whole) else None,
        yaxis=room.axis,
        mode="text",
        textposition=position,
        textfont={"family": face, "size": size, "color": colour},
        hoverinfo="skip",
        showlegend=False,
    )


def plain(text: str) -> str:
    """A text escaped so that Plotly reads no markup in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
