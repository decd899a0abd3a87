"""Cells, bars, bands and step areas as Plotly traces; the looks are those of assets/web/player."""

from collections.abc import Iterator

from visualizers.figures.theme import Theme
from visualizers.figures.traces import Room, alike, box, kind_of, lines, unseen, words
from visualizers.figures.wrapping import line_count, token_lines
from visualizers.scene.marks import Op

SIZE = 11  # pixels of letters in a box
CLEAR = "rgba(0,0,0,0)"


def cells(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Boxes by state and fill, with as much of their tokens as fits."""

    def corners(mark: Op) -> list[tuple[float, float]]:
        w = max(mark["w"] / 2 - 1 / room.column, 0.5 / room.column)
        h = mark["tall"] / 2 / room.row if mark.get("tall") else mark["h"] / 2 - 1 / room.row
        return box(mark["x"] - w, mark["x"] + w, mark["y"] - h, mark["y"] + h)

    def look(mark: Op) -> tuple:
        shade = min(len(theme.amounts) - 1, int((mark.get("weight") or 0) * len(theme.amounts)))
        return (
            mark.get("fill", "tint"),
            mark.get("state", "prompt"),
            shade if mark.get("fill") == "amount" else 0,
        )

    for (fill, state, shade), some in alike(marks, look):
        yield lines(
            (corners(m) for m in some),
            room,
            fill="toself",
            meta=kind_of(some[0]),
            **cell_look(fill, state, shade, theme),
        )
        yield unseen(some, room, lambda m: (m["x"], m["y"]))
        texts = [(m["x"], m["y"], cell_text(m, room), m.get("text") or "") for m in some]
        if texts := [one for one in texts if one[2]]:
            ink = theme.surface["on_fill"] if fill == "filled" else theme.surface["text"]
            size = SIZE if room.column >= 34 else SIZE - 1
            yield words(
                texts, room, theme.colour("rejected") if (fill, state) == ("tint", "rejected") else ink, size
            )


def cell_look(fill: str, state: str, shade: int, theme: Theme) -> dict:
    """Fill and outline of a box, as arguments of a scatter trace."""
    known = theme.state.get(state, theme.state["prompt"])
    line = {"color": known["color"], "width": 1.4}
    if fill == "amount":
        return {"fillcolor": theme.amounts[shade], "line": {"width": 0}}
    if fill == "filled":
        return {"fillcolor": known["color"], "line": {"width": 0}}
    if fill == "outline":
        return {"fillcolor": theme.surface["bg"], "line": line | {"width": 2}}
    if fill in ("dashed", "dotted"):
        return {"fillcolor": CLEAR, "line": line | {"dash": "dash" if fill == "dashed" else "dot"}}
    if fill == "hatched":
        return {"fillcolor": theme.surface["panel"], "line": {"color": theme.surface["line"], "width": 1}}
    if fill == "none":
        return {"fillcolor": CLEAR, "line": {"width": 0}}
    framed = state in ("rejected", "tolerated")
    return {"fillcolor": known["tint"], "line": line if framed else {"width": 0}}


def cell_text(mark: Op, room: Room) -> str:
    """Glyph and token of a box, wrapped to the lines that fit."""
    tall = mark.get("tall") or mark["h"] * room.row
    if tall < 11:
        return ""
    glyph = f"{mark['glyph']} " if mark.get("glyph") else ""
    width = mark["w"] * room.column - 5 - (13 if glyph else 0)
    return (glyph + token_lines(mark.get("text") or "", width, SIZE, line_count(tall, SIZE))).strip()


def bars(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Segments of stacked bars, the first rank darkest."""
    for (rank,), some in alike(marks, lambda m: (min(m["rank"], len(theme.ranks) - 1),)):
        boxes = (box(m["x"] - m["w"] / 2, m["x"] + m["w"] / 2, m["y0"], m["y1"]) for m in some)
        line = {"color": theme.surface["bg"], "width": 1}
        yield lines(boxes, room, meta=kind_of(some[0]), fill="toself", fillcolor=theme.ranks[rank], line=line)
        yield unseen(some, room, lambda m: (m["x"], (m["y0"] + m["y1"]) / 2))


def bands(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Tinted areas behind everything."""
    for (role,), some in alike(marks, lambda m: (m["role"],)):
        tint = (
            theme.surface["panel"]
            if role == "panel"
            else (theme.state | theme.part)["live" if role == "amber" else role]["tint"]
        )
        boxes = (box(m["x0"], m["x1"], m.get("y0", room.y0), m.get("y1", room.y1)) for m in some)
        yield lines(boxes, room, meta=kind_of(some[0]), fill="toself", fillcolor=tint, line={"width": 0})
        yield unseen(some, room, lambda m: (m["x0"], m.get("y0", room.y0)))


def areas(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """A step area: one column per mark."""
    some = sorted(marks, key=lambda m: m["x"])
    boxes = (box(m["x"] - 0.5, m["x"] + 0.5, 0, m["y"]) for m in some)
    yield lines(boxes, room, fill="toself", fillcolor=theme.amounts[1], line={"width": 0})
    tops = ([(m["x"] - 0.5, m["y"]), (m["x"] + 0.5, m["y"])] for m in some)
    yield lines(tops, room, meta=kind_of(some[0]), line={"color": theme.surface["text"], "width": 1.6})
    yield unseen(some, room, lambda m: (m["x"], m["y"]))
