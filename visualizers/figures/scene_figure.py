"""A view of a trace as one Plotly figure, made from the same marks as the player's picture.

It has all columns and rows at once; zoom and pan replace the player's window.
"""

import math
import textwrap
from dataclasses import dataclass, replace

import plotly.graph_objects as go

from decoders.refusal import Refusal
from decoders.trace.number_format import many
from decoders.trace.trace import Trace
from visualizers.figures.marks import DRAWERS, traces
from visualizers.figures.room_for_words import column_for, extra_row
from visualizers.figures.theme import SANS, Theme, template, theme
from visualizers.figures.traces import Room, lines, plain, unseen, words
from visualizers.registry import build, head_of
from visualizers.scene.layout import to_json
from visualizers.scene.marks import Op
from visualizers.scene.view import Header
from visualizers.scene.words import cells as cells_of

COLUMN, ROW, LINE = 44, 36, 46  # pixels of a column and a row by default, and of a row of nodes at least
SHARED, GAP, INNER = 300, 14, 840  # pixels for all panels that share, between two, and in width at least
ABOVE, BELOW, LOWEST, WIDEST = (
    108,
    84,
    24,
    12_000,
)  # pixels over and under the panels, of a panel, of a figure
WIDENED = 5600  # maximum pixels of all columns together when they are widened for words
TITLE = 58  # pixels between the panels and the title, for the subtitle and the legend
LISTED = 16  # pixels of a line in a list at the side
HATCH = 16  # pixels between two lines over a lane that is untrusted
CHIPS = 88  # characters in a line of running text
CHARACTER, LETTERS = 7.4, 17  # maximum pixels of a character in a sentence, and of a line of it
TICK = 12  # minimum pixels between two numbers of a scale


@dataclass(frozen=True)
class Picture:
    """A view after some steps: its head, the current marks, and the sentence on the step."""

    head: dict
    marks: list[Op]
    says: str


@dataclass(frozen=True)
class Plan:
    """Where the marks of a picture go: the range of x, the pixels of a column, and each panel's room, mark
    and height.
    """

    x: tuple[float, float]
    column: float
    rooms: dict[str, tuple[Room, Op]]
    heights: dict[str, float]


def picture(trace: Trace, view: str, steps: int | None = None) -> Picture:
    """Folds the first `steps` steps of a trace (None: all). Refusal with one sentence if there is no such
    view, or it is not made for such traces.
    """
    built = build(view, Header.of(trace))
    head = head_of(built)
    try:
        fed = [to_json(built.feed(step)) for step in trace.steps[:steps]]
    except (KeyError, IndexError, TypeError) as error:  # events that this view cannot interpret
        raise Refusal(f"The view {built.title} cannot draw a trace of {trace.title}.") from error
    marks: dict[str, Op] = {}
    says = head["question"]
    for ops in [head.get("ops", []), *fed]:
        for op in ops:
            if "kind" in op:
                marks[op["id"]] = dict(op)
            elif "set" in op and op["id"] in marks:  # a mark that does not exist is ignored, as in the player
                marks[op["id"]] |= op["set"]
            says = op.get("say", says)
    return Picture(head, [m for m in marks.values() if not m.get("gone")], says)


def figure(trace: Trace, view: str | None = None, step: int | None = None, look: str = "light") -> go.Figure:
    """A view of the trace after `step` steps (None: all) as a Plotly figure.

    view: a name such as "beam_tree"; the first view of the trace's strategy if it is left out. look: "light"
    or "dark". Raises Refusal with one sentence for an unknown view or look, or a step that is not there.
    """
    if step is not None and not 0 <= step <= len(trace.steps):
        raise Refusal(f"The trace has {len(trace.steps)} steps; choose one of 0 to {len(trace.steps)}.")
    shown, colours = picture(trace, view or first_view(trace), step), theme(look)
    drawn = seen(shown)
    if any(m["kind"] == "chip" for m in drawn):
        return running_text(trace, shown, drawn, colours)
    return placed(trace, shown, plan(shown), colours, step)


def seen(shown: Picture) -> list[Op]:
    """The marks that are drawn; others are only counted or listed."""
    return [m for m in shown.marks if m.get("drawn") is not False]


def plan(shown: Picture, inner: float = INNER, column: float | None = None, shared: float = SHARED) -> Plan:
    """A plan in which all marks and their words have room. `inner`: the least width of all columns; `column`:
    pixels of a column, whatever the words need; `shared`: pixels for all panels that share.
    """
    drawn = seen(shown)
    x = columns(shown.head, drawn)
    if column is not None:
        rooms, heights = panels(shown.head, shown.marks, column, x, shared)
        return Plan(x, column, rooms, heights)
    column = max(shown.head.get("column") or COLUMN, inner / (x[1] - x[0]))
    rooms, _ = panels(shown.head, shown.marks, column, x, shared)
    inside = [m for m in drawn if _panel(m, rooms) in rooms]
    wanted = column_for(inside, lambda mark: rooms[_panel(mark, rooms)][0].row)
    column = max(column, min(wanted, WIDENED / (x[1] - x[0])))
    rooms, heights = panels(shown.head, shown.marks, column, x, shared)
    return Plan(x, column, rooms, heights)


def placed(trace: Trace, shown: Picture, plan: Plan, colours: Theme, step: int | None) -> go.Figure:
    """The figure of a picture by a plan, which may be that of a later step of the same run."""
    x, column, rooms, heights, drawn = plan.x, plan.column, plan.rooms, plan.heights, seen(shown)
    data = []
    for kind in DRAWERS:
        for name, (room, _) in rooms.items():
            some = [m for m in drawn if m["kind"] == kind and _panel(m, rooms) == name]
            if some:
                data += traces(kind, some, room, colours)
    name_states(data, shown.head)
    if untrusted(trace):
        data += [hatch(room, colours) for room, _ in rooms.values()]
    total = sum(heights.values()) + GAP * (len(heights) - 1)
    left, right = shown.head.get("left") or 8, shown.head.get("right") or 8
    wide = min(WIDEST, column * (x[1] - x[0])) + left + right + 20
    layout = {
        "title": title(trace, shown, step),
        "height": total + ABOVE + BELOW,
        "width": wide,
        "margin": {"l": left + 10, "r": right + 10, "t": ABOVE, "b": BELOW},
        "xaxis": {
            "range": list(x),
            "title": {"text": shown.head.get("axis") or ""},
            "showgrid": False,
            "visible": shown.head.get("axis", "") is not None,
            "anchor": "free",
            "position": 0,
            **across(x, rooms),
        },
        **y_axes(rooms, heights, total),
    }
    if shown.head.get("fold_rows") == "stairs":
        steps = [m for m in drawn if m["kind"] == "row"]
        axis = next(room.axis for room, panel in rooms.values() if panel.get("grow"))
        layout["meta"] = {"stairs": {"axis": axis, "rows": [[m["y0"], m["y1"]] for m in steps]}}
    notes = headings(rooms, layout, colours)
    for name, (room, _) in rooms.items():
        notes += beside([m for m in drawn if _panel(m, rooms) == name], room, colours)
    return whole(data, layout, notes, shown.says, colours)


def first_view(trace: Trace) -> str:
    """The view with which the page opens a lane of this strategy; "text" for unknown strategies."""
    from decoders.registry import strategies

    known = strategies().get(trace.strategy)
    return known.views[0] if known else "text"


def title(trace: Trace, shown: Picture, step: int | None) -> dict:
    """The title (view and strategy) and the subtitle."""
    at = "" if step is None else f", after {step} of {many(len(trace.steps), 'step')}"
    text = f"<b>{plain(shown.head['title'])}</b> · {plain(trace.title)}{at}"
    doubt = untrusted(trace)
    under = {"text": f"<b>{plain(doubt)}</b>" if doubt else plain(shown.head["question"])}
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom"}
    return {"text": text, "subtitle": under, **place, "pad": {"b": TITLE}}


def untrusted(trace: Trace) -> str | None:
    """Why the file that a lane was made of is not to be trusted; None if nothing says so."""
    if not trace.trust or not trace.trust["faults"]:
        return None
    from decoders.explain.trust import verdict  # few lanes need it
    from decoders.trace.trust import Trust

    return verdict(Trust.from_json(trace.trust))


def hatch(room: Room, colours: Theme) -> dict:
    """Diagonals over a panel, HATCH pixels apart: its lane is untrusted."""
    wide, tall = room.column * (room.x[1] - room.x[0]), room.row * abs(room.y1 - room.y0)
    down = 1 if room.y1 > room.y0 else -1

    def at(across: float, below: float) -> tuple[float, float]:
        return room.x[0] + across / room.column, room.y0 + down * below / room.row

    starts = range(HATCH, int(wide + tall), HATCH)  # pixels along the upper edge, and on beyond it
    strokes = ([at(min(s, wide), max(0, s - wide)), at(max(0, s - tall), min(s, tall))] for s in starts)
    look = {"color": colours.state["rejected"]["color"], "width": 1}
    return lines(strokes, room, line=look, opacity=0.35)


def columns(head: dict, marks: list[Op]) -> tuple[float, float]:
    """The range of x that all marks need; bands do not count, as some have no end."""
    ends = [float(head.get("first") or 0)]
    for mark in (m for m in marks if m["kind"] != "band"):
        half = mark["w"] / 2 if mark["kind"] in ("cell", "bar") else 0
        ends += [mark[name] + side for name in ("x", "x0", "x1") if name in mark for side in (-half, half)]
        ends += [point[0] for point in mark.get("points", [])]
    return min(ends) - 0.6, max(ends) + 0.6


def across(x: tuple[float, float], rooms: dict[str, tuple[Room, Op]]) -> dict:
    """Ticks of x at whole columns, in the unit of the panel that has one."""
    unit = next((panel["x_unit"] for _, panel in rooms.values() if panel.get("x_unit")), 1)
    span = x[1] - x[0]
    every = 1 if span <= 12 else 5 if span <= 60 else 10 if span <= 150 else 50
    at = [n for n in range(math.ceil(x[0] / every) * every, math.floor(x[1]) + 1, every) if n >= 0]
    return {"tickvals": at, "ticktext": [f"{n * unit:g}" for n in at]}


# ---- panels ------------------------------------------------------------------------------------------


def _panel(mark: Op, rooms: dict) -> str:
    """The name of a mark's panel: the one it names, if that still exists, otherwise the first."""
    return mark.get("panel") or next(iter(rooms))


def panels(
    head: dict, marks: list[Op], column: float, x: tuple[float, float], shared: float = SHARED
) -> tuple[dict[str, tuple[Room, Op]], dict[str, float]]:
    """(panel -> its room and its mark, from top to bottom; panel -> its height in pixels)."""
    listed = [m for m in marks if m["kind"] == "panel" and not m.get("below_px")] or [
        {"id": "", "y0": -0.5, "y1": 1, "grow": True}
    ]
    if listed[0]["id"] == "" and head.get("rows"):
        listed = [{"id": "", "y0": 0, "y1": head["rows"], "rows": head["rows"]}]
    below = head.get("notes") == "under"
    shares = sum(p.get("share") or 1 for p in listed if not p.get("px")) or 1
    rooms, heights = {}, {}
    for index, panel in enumerate(listed):
        name, (y0, y1) = panel["id"], (panel["y0"], panel["y1"])
        inside = [m for m in marks if (m.get("panel") or "") == name and m["kind"] not in ("panel", "band")]
        more = extra_row(inside, column)
        if panel.get("grow"):
            y1 = max([y1, *(low(m) + 0.25 for m in inside)])
        elif panel.get("rows"):  # with room for the words above the first, and half a row below the last
            unit = max(head.get("row") or 0, LINE) + more
            rows = max([panel["rows"] - 0.5, *(low(m) + 0.5 for m in inside)])  # a tree may outgrow its rows
            y0, y1 = -34 / unit, rows + 8 / unit
        tall = panel.get("px") or shared * (panel.get("share") or 1) / shares
        if panel.get("grow") or panel.get("rows"):
            tall = (y1 - y0) * (unit if panel.get("rows") else (head.get("row") or ROW) + more)
        over = max([0.0, *(under(m, y0, y1, tall) for m in inside)])  # words under a mark at the foot
        y1, tall = y1 + over * (y1 - y0) / tall, tall + over
        heights[name] = max(LOWEST, tall)
        axis = f"y{index + 1}" if index else "y"
        rooms[name] = (Room(axis, y0, y1, column, heights[name] / abs(y1 - y0), x, below), panel)
    return rooms, heights


def under(label: Op, y0: float, y1: float, tall: float) -> float:
    """Pixels by which a label, shifted from its mark, extends below a panel from `y0` to `y1`."""
    if label["kind"] != "label" or not label.get("dy") or label.get("drawn") is False:
        return 0.0
    return (label["y"] - y1) * tall / (y1 - y0) + label["dy"] + LETTERS / 2


def far(tick: list, other: list, room: Room) -> bool:
    """Whether two ticks are far enough apart for their labels."""
    return abs(tick[0] - other[0]) * room.row >= TICK


def low(mark: Op) -> float:
    """The lowest y of a mark."""
    return max(
        [mark.get("y", 0) + mark.get("h", 0) / 2, mark.get("y0", 0), mark.get("y1", 0)]
        + [point[1] for point in mark.get("points", [])]
    )


def y_axes(rooms: dict[str, tuple[Room, Op]], heights: dict[str, float], total: float) -> dict[str, dict]:
    """The y axes of the panels with their scales and titles, stacked from top to bottom."""
    top, axes = total, {}
    for name, (room, panel) in rooms.items():
        bottom = top - heights[name]
        ticks = [t if isinstance(t, list) else [t, f"{t:g}"] for t in panel.get("ticks") or []]
        ticks = [t for i, t in enumerate(ticks) if all(far(t, one, room) for one in ticks[:i])]
        axes[room.axis.replace("y", "yaxis")] = {
            "domain": [max(0.0, bottom / total), min(1.0, top / total)],
            "range": [room.y1, room.y0],
            "tickvals": [t[0] for t in ticks],
            "ticktext": [t[1] for t in ticks],
            "showgrid": bool(ticks),
            "title": {"text": plain(panel.get("title") or "")},
            "fixedrange": bool(ticks),
            "anchor": "x",
        }
        top = bottom - GAP
    return axes


def headings(rooms: dict[str, tuple[Room, Op]], layout: dict, colours: Theme) -> list[dict]:
    """The headings of the panels as annotations, each at the top of its panel in this layout."""
    font = {"size": 13, "color": colours.surface["soft"]}
    corner = {"x": 0, "xref": "paper", "xanchor": "left", "yref": "paper", "yanchor": "top"}
    return [
        {
            "text": heading(panel, room),
            **corner,
            "y": layout[room.axis.replace("y", "yaxis")]["domain"][1],
            "font": font,
            "showarrow": False,
            "align": "left",
        }
        for room, panel in rooms.values()
        if panel.get("heading")
    ]


def heading(panel: Op, room: Room) -> str:
    """The sentence at the top of a panel, its first words bold, in lines that fit; its short form if those
    are too many.
    """
    lead, max_lines = panel.get("lead") or "", max(1, int(room.row * abs(room.y1 - room.y0) / LETTERS))
    broken: list[str] = []
    for sentence in (panel["heading"], panel.get("short")):
        if sentence and (not broken or len(broken) > max_lines):
            broken = wrapped(lead + sentence, room.column * (room.x[1] - room.x[0]))
    text, bold = "<br>".join(map(plain, broken)), plain(lead)
    return f"<b>{bold}</b>{text.removeprefix(bold)}" if lead and text.startswith(bold) else text


def wrapped(text: str, width: float) -> list[str]:
    """A text as lines that fit into `width` pixels; its line feeds are kept."""
    max_characters = int(width / CHARACTER)
    return [line for part in text.split("\n") for line in textwrap.wrap(part, max_characters) or [""]]


def beside(marks: list[Op], room: Room, colours: Theme) -> list[dict]:
    """The contents of a panel's gutters as annotations: row names and lists."""
    notes = []
    for mark in marks:
        if mark["kind"] == "row":
            y = mark.get("label_y", (mark["y0"] + mark["y1"]) / 2)
            for side, text, bold in (("left", "text", "bold"), ("right", "right", "right_bold")):
                label = bolder(mark.get(text), mark.get(bold))
                notes += [aside(label, side, y, room.axis, colours.surface["soft"])] if label else []
        elif mark["kind"] == "label" and mark.get("side") and mark.get("text"):
            label = bolder("", mark["text"]) if mark.get("bold") else plain(mark["text"])
            y = mark["y"] if "line" not in mark else room.y0 + LISTED * (mark["line"] + 0.7) / room.row
            notes.append(aside(label, mark["side"], y, room.axis, colours.colour(mark.get("role"))))
    return notes


def bolder(text: str | None, bold: str | None) -> str:
    """A text with its bold end."""
    return f"{plain(text or '')} {f'<b>{plain(bold)}</b>' if bold else ''}".strip()


def aside(text: str, side: str, y: float, axis: str, colour: str) -> dict:
    """Words in a gutter."""
    x, anchor, shift = (0, "right", -6) if side == "left" else (1, "left", 6)
    return {
        "text": text,
        "x": x,
        "xref": "paper",
        "xanchor": anchor,
        "xshift": shift,
        "y": y,
        "yref": axis,
        "showarrow": False,
        "font": {"size": 11, "color": colour, "family": SANS},
    }


# ---- words around ------------------------------------------------------------------------------------


def name_states(data: list[dict], head: dict) -> None:
    """Names traces for the legend, with the view's own words for the states and shapes that occur."""
    titles = {key: text for key, _, _, text in head.get("legend", [])}
    named: set[str] = set()
    for one in data:
        known = one.get("meta") or {}
        keys = [f"{known.get('kind')}:{known.get(name)}" for name in ("state", "fill")]
        text = next((titles[key] for key in (*keys, known.get("kind")) if key in titles), None)
        if text and text not in named and one.get("marker", {}).get("opacity") != 0:
            named.add(text)
            one.update(name=plain(text), showlegend=True)


def whole(data: list[dict], layout: dict, notes: list[dict], says: str, colours: Theme) -> go.Figure:
    """The figure with all annotations, and below it a sentence for people who cannot see it.

    Made at once: each later change of a figure costs as much as many marks.
    """
    says = "" if says == layout["title"]["subtitle"]["text"] else says
    broken = textwrap.wrap(says, int(layout["width"] / CHARACTER), max_lines=2, placeholder=" …")
    below = {
        "text": "<br>".join(map(plain, broken)),
        "x": 0,
        "xref": "paper",
        "y": 0,
        "yref": "paper",
        "yshift": 6 - BELOW,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": colours.surface["soft"]},
    }
    layout |= {
        "template": template(colours.name),
        "annotations": [*notes, below],
        "meta": {**layout.get("meta", {}), "caption": says},
    }
    return go.Figure(data, layout)


def running_text(
    trace: Trace, shown: Picture, chips: list[Op], colours: Theme, letters: int = CHIPS
) -> go.Figure:
    """The view of a lane's text: tokens as lines of so many letters, tinted by their state."""
    data, room, across, down, placed = [], Room("y", -0.8, 1, 8, 26, (0, letters)), 0.0, 0, []
    for chip in [m for m in chips if m["kind"] == "chip"]:
        wide = max(1, cells_of(chip["text"]))
        if across + wide > letters:
            across, down = 0.0, down + 1
        placed.append({**chip, "x": across + wide / 2, "y": down, "w": wide})
        across += wide
        if chip["text"].endswith("↵"):
            across, down = 0.0, down + 1
    states: dict[str, list[Op]] = {}
    for chip in placed:
        states.setdefault(chip["state"], []).append(chip)
    for state, some in states.items():
        tint = colours.state.get(state, colours.state["prompt"])["tint"]
        boxes = (
            [
                (c["x"] + dx * c["w"] / 2, c["y"] + dy)
                for dx, dy in ((-1, -0.42), (1, -0.42), (1, 0.42), (-1, 0.42))
            ]
            for c in some
        )
        room = replace(room, y1=down + 0.8)
        data.append(lines(boxes, room, fill="toself", fillcolor=tint, line={"width": 0}))
        data.append(unseen(some, room, lambda c: (c["x"], c["y"])))
        data.append(words([(c["x"], c["y"], c["text"]) for c in some], room, colours.surface["text"], 12))
    layout = {
        "title": title(trace, shown, None),
        "width": 860,
        "height": ABOVE + BELOW + 26 * (down + 2),
        "margin": {"l": 20, "r": 20, "t": ABOVE, "b": BELOW},
        "xaxis": {"range": [0, letters], "visible": False},
        "yaxis": {"range": [down + 0.8, -0.8], "visible": False},
    }
    return whole(data, layout, [], shown.says, colours)
