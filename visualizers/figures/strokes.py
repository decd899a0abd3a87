"""Symbols, arcs, hooks, paths, lines and labels as Plotly traces, in the styles of assets/web/player."""

import math
from collections.abc import Iterator

from visualizers.figures.theme import MONO, SANS, Theme
from visualizers.figures.traces import Room, alike, kind_of, lines, points, scatter, unseen, words
from visualizers.figures.wrapping import LINE, token_lines
from visualizers.scene.marks import Op
from visualizers.scene.words import MONO as MONO_WIDTH
from visualizers.scene.words import cells

GLYPHS = {
    "dot": "circle",
    "diamond": "diamond-open",
    "triangle": "triangle-down",
    "ring": "circle-open",
    "star": "star",
    "square": "square",
}
ARC_POINTS = 16
SIZE, SANS_WIDTH = 12, 0.52  # pixels of a label's letters, and their mean width relative to that


def stems(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Thin vertical lines."""
    pieces = ([(m["x"], m["y0"]), (m["x"], m["y1"])] for m in marks)
    yield lines(pieces, room, meta=kind_of(marks[0]), line={"color": theme.surface["soft"], "width": 1})
    yield unseen(marks, room, lambda m: (m["x"], m["y1"]))


def guides(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Dotted vertical lines over the whole height of a panel."""
    pieces = ([(m["x"], room.y0), (m["x"], room.y1)] for m in marks)
    yield lines(
        pieces,
        room,
        meta=kind_of(marks[0]),
        line={"color": theme.surface["text"], "width": 1.2, "dash": "dot"},
    )
    yield unseen(marks, room, lambda m: (m["x"], room.y0))


def symbols(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Dots, diamonds, triangles, rings, stars and squares."""
    for (glyph, role, size), some in alike(marks, lambda m: (m["glyph"], m.get("role"), m.get("size"))):
        look = {"symbol": GLYPHS.get(glyph, "circle"), "size": size or 9, "color": theme.colour(role)}
        yield points(some, room, lambda m: (m["x"], m["y"]), mode="markers", marker=look, cliponaxis=False)


def arcs(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Arcs over a line of tokens; the width of a strong one shows its weight."""

    def look(mark: Op) -> tuple:
        return (
            round(1.5 + 8 * min(1.0, mark["weight"] / 0.25)) if mark.get("strong") else 1,
            bool(mark.get("strong")),
        )

    for (width, strong), some in alike(marks, look):
        colour = theme.surface["soft"] if strong else theme.amounts[3]
        yield lines(
            (arc(m) for m in some), room, meta=kind_of(some[0]), line={"color": colour, "width": width}
        )
        yield unseen(some, room, lambda m: ((m["x0"] + m["x1"]) / 2, m["y"] + m["height"]))


def arc(mark: Op) -> list[tuple[float, float]]:
    """The points of an arc."""
    return [
        (
            mark["x0"] + (mark["x1"] - mark["x0"]) * i / ARC_POINTS,
            mark["y"] + mark["height"] * math.sin(math.pi * i / ARC_POINTS),
        )
        for i in range(ARC_POINTS + 1)
    ]


def hooks(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Links below the cells, from a cell to one that depended on it."""
    for (strong,), some in alike(marks, lambda m: (bool(m.get("strong")),)):
        line = {"color": theme.link, "width": 2.4 if strong else 1.2}
        yield lines(
            (hook(m) for m in some), room, meta=kind_of(some[0]), line=line, opacity=1 if strong else 0.55
        )
        yield unseen(some, room, lambda m: (m["x1"], m["y1"] + 0.5))


def hook(mark: Op) -> list[tuple[float, float]]:
    """The points of a hook."""
    low = mark["y1"] + 0.6 + 0.06 * (abs(round(mark["x1"])) % 4)
    return [
        (mark["x0"], mark["y0"] + 0.46),
        (mark["x0"], low),
        (mark["x1"], low),
        (mark["x1"], mark["y1"] + 0.46),
    ]


def paths(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Polylines, some with an arrow head."""

    def look(mark: Op) -> tuple:
        width = mark.get("width") or {"ink": 3, "soft": 1.5}.get(mark["role"], 1)
        return mark["role"], width, mark.get("dash") or "solid", bool(mark.get("head"))

    for (role, width, dash, head), some in sorted(alike(marks, look), key=lambda one: one[0][1]):
        colour = theme.colour(role)
        yield lines(
            ([tuple(p) for p in m["points"]] for m in some),
            room,
            meta=kind_of(some[0]),
            line={"color": colour, "width": width, "dash": dash},
        )
        if head:
            yield heads(some, room, colour)
        yield unseen(some, room, lambda m: tuple(m["points"][len(m["points"]) // 2]))


def heads(marks: list[Op], room: Room, colour: str) -> dict:
    """A triangle at the end of each path, in the direction of its last segment."""
    ends = [(mark["points"][-2], mark["points"][-1]) for mark in marks]
    angles = [
        math.degrees(math.atan2((b[0] - a[0]) * room.column, -(b[1] - a[1]) * room.row)) for a, b in ends
    ]
    marker = {"symbol": "triangle-up", "size": 8, "color": colour, "angle": angles}
    return scatter(
        x=[b[0] for _, b in ends],
        y=[b[1] for _, b in ends],
        yaxis=room.axis,
        mode="markers",
        marker=marker,
        hoverinfo="skip",
        showlegend=False,
    )


def labels(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Labels inside the panel; those in its gutters are annotations (see scene_figure)."""
    inside = [m for m in marks if not m.get("side") and m.get("text")]
    written = {m["id"] for m in apart(inside, room)}

    def look(mark: Op) -> tuple:
        return mark.get("face", "sans"), mark.get("size", SIZE), mark.get("role"), mark.get("align", "center")

    sides = {"left": "middle right", "right": "middle left", "center": "middle center"}
    for (face, size, role, align), some in alike(inside, look):
        texts = []
        for mark in (m for m in some if m["id"] in written):
            text = label_text(mark, room)
            texts.append((*label_place(mark, room, text, size), text, mark["text"]))
        if texts:
            font = MONO if face == "mono" else SANS
            yield words(texts, room, theme.colour(role), size, sides[align], font)
        yield unseen(some, room, lambda m: (m["x"], m["y"]))


def apart(marks: list[Op], room: Room) -> list[Op]:
    """The labels that overlap none of a higher priority; the others can still be hovered."""
    kept: list[Op] = []
    boxes: list[tuple[float, float, float, float]] = []
    for mark in sorted(marks, key=lambda m: m.get("priority", 4)):
        text, size = label_text(mark, room), mark.get("size", SIZE)
        x, y = label_place(mark, room, text, size)
        lines = text.split("\n")
        wide = max(label_width({**mark, "text": line}) for line in lines)
        left = x * room.column - wide * {"left": 0, "right": 1}.get(mark.get("align"), 0.5)
        middle, high = y * room.row, len(lines) * LINE * size - 3
        box = (left, middle - high / 2, left + wide, middle + high / 2)
        if not any(touch(box, other) for other in boxes):
            kept.append(mark)
            boxes.append(box)
    return kept


def touch(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def label_place(label: Op, room: Room, text: str, size: float) -> tuple[float, float]:
    """The centre (x, y) of a label, including its shift in pixels: lines next to a mark are centred on it,
    lines at a distance start there.
    """
    down = label.get("dy", 0) + ("dy" in label) * text.count("\n") * LINE * size / 2
    return label["x"] + label.get("dx", 0) / room.column, label["y"] + down / room.row


def label_text(label: Op, room: Room) -> str:
    """The words of a label: within its columns if it has some, with what two spaces part below each other
    where that is too wide.
    """
    text, wide = label["text"], label.get("w", 1) * room.column
    if label.get("stack"):
        return text.replace("  ", "\n") if label_width(label) > wide else text
    letter = label_width(label) / max(1, cells(text)) / MONO_WIDTH
    return token_lines(text, wide - 4, letter, 2 if label.get("rises") else 1) if label.get("w") else text


def label_width(label: Op) -> float:
    """Width of a label in pixels, on one line."""
    mono = label.get("face") == "mono"
    return cells(label["text"]) * label.get("size", SIZE) * (MONO_WIDTH if mono else SANS_WIDTH)
