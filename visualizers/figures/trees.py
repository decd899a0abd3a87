"""Nodes, edges and dropped candidates as Plotly traces, in the styles of assets/web/player/trees.js."""

from collections.abc import Iterator

from visualizers.figures.theme import SANS, Theme
from visualizers.figures.traces import Room, alike, kind_of, lines, points, unseen, words
from visualizers.figures.wrapping import token_lines
from visualizers.scene.marks import Op

SYMBOLS = {  # state of a node -> symbol and size in pixels
    "prompt": ("circle", 5),
    "unreached": ("circle-open", 6),
    "pruned": ("circle", 4),
    "rejected": ("x-thin", 9),
    "finished": ("square", 9),
    "bonus": ("star", 13),
    "resampled": ("diamond", 11),
    "accepted": ("circle", 9),
    "tolerated": ("circle", 9),
    "forced": ("pentagon", 11),
    "chosen": ("circle", 8),
    "live": ("circle-open", 8),
}
CURVE = [(i / 10, (i / 10) ** 2 * (3 - 2 * i / 10)) for i in range(11)]  # the player's smooth edge
LIFT, BESIDE = 4, 8  # pixels from the centre of a node to the bottom of its token, and to its note
SIZE, LINES = 11, 2  # pixels of letters, and lines of a token above its node
TICKS_SHOWN = 5  # maximum number of immediately dropped candidates drawn below their parent


def nodes(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Symbols by state, filled and larger at the front; tokens above them, notes to their right."""
    for (state, front), some in alike(marks, lambda m: (m["state"], bool(m.get("front")))):
        symbol, size = SYMBOLS.get(state, SYMBOLS["prompt"])
        if front and state in ("live", "chosen"):
            symbol, size = "circle", size + 3
        colour = theme.colour(state)
        marker = {"symbol": symbol, "size": size, "color": colour, "line": {"color": colour, "width": 1.8}}
        yield points(some, room, lambda m: (m["x"], m["y"]), mode="markers", marker=marker)
    first = sorted(marks, key=lambda m: m["state"] == "chosen")
    named = [
        (m["x"], m["y"] - LIFT / room.row, token_lines(m["text"], room.column - 4, SIZE, LINES), m["text"])
        for m in {(m["x"], m["y"]): m for m in first if m.get("text") and not m.get("quiet")}.values()
    ]
    right, down = (0.0, LIFT / room.row) if room.notes_under else (BESIDE / room.column, 0.0)
    notes = {(m["x"], m["y"]): m["note"] for m in marks if m.get("note")}
    noted = [(x + right, y + down, note) for (x, y), note in notes.items()]
    if named:
        yield words(named, room, theme.surface["text"], SIZE, "top center")
    if noted:
        position = "bottom center" if room.notes_under else "middle right"
        yield words(noted, room, theme.surface["soft"], 10, position, SANS)


def edges(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Smooth edges; the width of live ones shows the probability."""

    def look(mark: Op) -> tuple:
        weight = mark.get("weight", 0.5)
        live = 1.1 if weight < 0.25 else 1.8 if weight < 0.6 else 2.6
        known = theme.state.get(mark["state"], theme.state["prompt"])
        return mark["state"], live if mark["state"] == "live" else min(4.5, known["width"])

    for (state, width), some in sorted(alike(marks, look), key=lambda one: one[0][1]):
        known = theme.state.get(state, theme.state["prompt"])
        line = {"color": known["color"], "width": width, "dash": known["dash"]}
        yield lines(
            (curve(m) for m in some),
            room,
            meta=kind_of(some[0]),
            line=line,
            opacity=0.7 if state == "pruned" else 1,
        )
        yield unseen(some, room, lambda m: ((m["x0"] + m["x1"]) / 2, (m["y0"] + m["y1"]) / 2))


def curve(edge: Op) -> list[tuple[float, float]]:
    """The points of an edge."""
    (x0, x1), (y0, y1) = (edge["x0"], edge["x1"]), (edge["y0"], edge["y1"])
    if abs(y1 - y0) < 1e-6:
        return [(x0, y0), (x1, y1)]
    return [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * s) for t, s in CURVE]


def ticks(marks: list[Op], room: Room, theme: Theme) -> Iterator[dict]:
    """Slanted strokes below the parent of candidates that were dropped at once, at most TICKS_SHOWN."""
    for (state,), some in alike([m for m in marks if m["index"] < TICKS_SHOWN], lambda m: (m["state"],)):

        def at(mark: Op) -> tuple[float, float]:
            return mark["x"] + (6.5 + mark["index"] * 3.4) / room.column, mark["y"] + 14 / room.row

        strokes = (
            [(x - 1.5 / room.column, y - 4 / room.row), (x + 1.5 / room.column, y + 4 / room.row)]
            for x, y in map(at, some)
        )
        yield lines(strokes, room, meta=kind_of(some[0]), line={"color": theme.colour(state), "width": 1})
        yield unseen(some, room, at)
