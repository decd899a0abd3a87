"""A view of a trace as a figure for a paper: an SVG as wide as its column, in millimetres, with letters of at
least 8 pt, and a caption.

    for_print(trace, "draft_rounds", width_mm=84).save("rounds.svg")

Title, sentences and costs are in the caption, not in the picture. A run that is too wide is broken into lines
where rounds end, or between columns. Words are outlines, so that they look the same everywhere.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from zlib import crc32

import plotly.graph_objects as go

from decoders import files
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from visualizers.figures.outlines import definitions, span_width, spans, widest, words
from visualizers.figures.print_caption import GLYPHED, caption
from visualizers.figures.run_lines import Line, packed, points, rounds, row_band, stairs
from visualizers.figures.scene_figure import (
    CHIPS,
    SHARED,
    Picture,
    Plan,
    first_view,
    picture,
    placed,
    plan,
    running_text,
    seen,
)
from visualizers.figures.svg import Frame, axes, frame, glyph, path, shapes
from visualizers.figures.theme import MONO, Theme, theme
from visualizers.figures.wrapping import LINE
from visualizers.scene.marks import Op

NARROWEST, BROADEST = 60, 1000  # mm
PAGE = 240  # mm that a page has for a figure
LETTER, TYPE = 11, 8  # pixels of the smallest letters in a figure, and their size in print in points
MM = TYPE / LETTER * 25.4 / 72  # mm of a pixel in print
BETWEEN, OF_ROUNDS = 10, 4  # pixels between two lines, and between two of rounds
ASIDE, PAD = 14, 6  # pixels between lines side by side, and around a token
TICKS, OVER = 15, 4  # pixels for the numbers below a line, and above it
MAX_SIDE_BY_SIDE, TIGHT = 4, 14  # TIGHT: pixels of a column of which the token stands upright
LOW = 110  # pixels of the panels that share, in a figure of several lines
WIDER = 1.6  # maximum factor by which columns are widened so that they fill the lines
LAST = 0.6  # columns that a line has after its last whole one at most
SYMBOLS = 18  # pixels of a panel of symbols without words
UPRIGHT = 12  # number of tokens in one row from which they are turned, if they do not fit
NARROW = 0.75  # minimum factor by which a token is narrowed to fit its column
CHARACTER = 7.2  # pixels of a letter in running text
MEAN = 0.87  # mean width of a letter here, relative to one in a figure on the screen


@dataclass(frozen=True)
class Printed:
    """A figure for print: the picture, the text to go below it, and its size in millimetres."""

    svg: str
    caption: str
    width_mm: float
    height_mm: float

    def save(self, path: str | Path) -> None:
        """Writes the picture, and the caption beside it as text. Raises Refusal with one sentence unless the
        name ends in .svg.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise Refusal(f"A figure for print is saved as .svg, not as {path.name}.")
        files.write(path, self.svg)
        files.write(path.with_suffix(".txt"), f"{self.caption}\n")

    @property
    def note(self) -> str:
        """One sentence if the figure is higher than a page; otherwise ""."""
        if self.height_mm <= PAGE:
            return ""
        tall = f"The figure is {self.height_mm:.0f} mm high, more than a page has"
        return f"{tall}: choose a greater width, or fewer steps."


@dataclass(frozen=True)
class Words:
    """Words in a figure, in its pixels. `place`: "marks" for words among the marks, which can be narrowed to
    `room` pixels if that is above 0; "left", "right" or "below" for those around the panels.
    """

    text: str
    x: float
    y: float
    size: float
    colour: str
    anchor: str
    place: str = "marks"
    room: float = 0
    turned: bool = False


def for_print(
    trace: Trace, view: str | None = None, step: int | None = None, width_mm: float = 84
) -> Printed:
    """A view after `step` steps (None: all), `width_mm` wide; the strategy's first view if it is left out.

    Raises Refusal with one sentence for a width that is no paper's, an unknown view, or a step that is not
    there.
    """
    check_width(width_mm)
    if step is not None and not 0 <= step <= len(trace.steps):
        raise Refusal(f"The trace has {len(trace.steps)} steps; choose one of 0 to {len(trace.steps)}.")
    shown, colours, wide = picture(trace, view or first_view(trace), step), theme("light"), width_mm / MM
    if any(m["kind"] == "chip" for m in seen(shown)):
        made, turned = text_figure(trace, shown, colours, wide), []
    else:
        made, turned = fitted(trace, shown, colours, wide)
    text = caption(trace, shown, made, step)
    return drawn(made, turned, text, wide, width_mm)


def check_width(width_mm: float) -> None:
    """Raises Refusal with one sentence for a width that no figure for print has."""
    if not NARROWEST <= width_mm <= BROADEST:
        raise Refusal(f"A figure for print is {NARROWEST} to {BROADEST:,} mm wide, not {width_mm:g} mm.")


# ---- the figure in the right width -------------------------------------------------------------------


def fitted(trace: Trace, shown: Picture, colours: Theme, wide: float) -> tuple[go.Figure, list[Op]]:
    """(the figure with columns as wide as its words need in print, its tokens that stand upright)."""
    shown = without_sentences(shown)
    natural = plan(shown, 1.0)
    made, span = placed(trace, shown, natural, colours, None), natural.x[1] - natural.x[0]
    left, right = margins(made)
    inner, turned = wide - left - right, []
    need = inner / span if shown.head.get("span") else needed(made)
    if need * span > inner and (row := token_row(shown)):
        shown, turned = upright(shown, row)
        need = TIGHT
    several = need * span > inner + 0.5
    column = filling(need, natural.x, wide - left, right) if several else inner / span
    drawn_at = column if turned else max(column, min(natural.column, column / MEAN))
    shared = LOW if several else min(SHARED, wide / 2)
    fit = plan_of(shown, drawn_at, shared)
    if turned:
        room, _ = fit.rooms[row]
        turned = [{**one, "axis": room.axis, "top": one["y"] - one["h"] / 2} for one in turned]
    return narrowed(placed(trace, shown, fit, colours, None), column), turned


def filling(need: float, x: tuple[float, float], room: float, after: float) -> float:
    """The pixels of a column, at least `need`, at which the columns of the range x fill their lines."""
    first = math.ceil(x[0] - 0.5) + 0.5
    whole = math.floor(x[1] - first)
    every = per_line(need, whole, first - x[0], room, after)
    return max(
        need,
        min(
            WIDER * need,
            (room - 1) / (every + first - x[0]),
            (room - 1 - after) / (rest(whole, every) + LAST),
        ),
    )


def text_figure(trace: Trace, shown: Picture, colours: Theme, wide: float) -> go.Figure:
    """The view of a lane's text, with the glyphs of its states, as tints alone are lost in grey."""
    chips = [
        {**m, "text": f"{colours.state[m['state']]['glyph']} {m['text']}"} if m.get("state") in GLYPHED else m
        for m in seen(shown)
    ]
    made = running_text(trace, shown, chips, colours, min(CHIPS, int((wide - 4) / CHARACTER)))
    made.layout.height -= made.layout.margin.t + made.layout.margin.b
    made.layout.margin, made.layout.width = {"l": 2, "r": 2, "t": 0, "b": 0}, wide
    return made


def plan_of(shown: Picture, column: float, shared: float) -> Plan:
    """A plan with columns of so many pixels, whatever their words need."""
    return plan(shown, 1.0, column, shared)


def without_sentences(shown: Picture) -> Picture:
    """The picture without the panels that hold a sentence, which is in the caption, and, of stairs, without
    the row of the text, whose tokens are in the rounds.
    """
    said = {m["id"] for m in shown.marks if m["kind"] == "panel" and m.get("heading")}
    if shown.head.get("fold_rows") == "stairs":
        said |= {m["id"] for m in shown.marks if m["kind"] == "panel" and not m.get("grow")}
    kept = [m for m in shown.marks if m.get("panel") not in said and m["id"] not in said]
    return replace(shown, marks=kept)


def token_row(shown: Picture) -> str | None:
    """The panel that holds nothing but one row of tokens, if there is one and it holds many."""
    for panel in (m for m in shown.marks if m["kind"] == "panel"):
        cells = [m for m in seen(shown) if m["kind"] == "cell" and m.get("panel") == panel["id"]]
        if panel.get("px") and len(cells) >= UPRIGHT and len({m["y"] for m in cells}) == 1:
            return panel["id"]
    return None


def upright(shown: Picture, panel: str) -> tuple[Picture, list[Op]]:
    """The picture with its row of tokens turned by 90 degrees, and these tokens."""
    cells = [m for m in seen(shown) if m["kind"] == "cell" and m.get("panel") == panel and m.get("text")]
    high = max(span_width(m["text"], False) for m in cells) * LETTER + PAD
    labelled = {m.get("panel") for m in shown.marks if m["kind"] == "label"}
    marks = []
    for mark in shown.marks:
        if mark["id"] == panel:
            mark = {**mark, "px": high * abs(mark["y1"] - mark["y0"]) / cells[0]["h"]}
        elif mark["kind"] == "panel" and mark["id"] in labelled and mark.get("px"):
            mark = {**mark, "px": SYMBOLS}
        elif mark["kind"] == "cell" and mark.get("panel") == panel:
            mark = {**mark, "text": ""}
        elif mark["kind"] == "label":
            continue  # there is no room for words between columns as narrow as these
        marks.append(mark)
    return replace(shown, marks=marks), cells


def needed(made: go.Figure) -> float:
    """The pixels of a column at which the words in all columns have room."""
    of_tokens = [
        widest(text, LETTER) + PAD
        for trace in made.data
        if "text" in trace.mode and trace.textfont.family == MONO
        for text in trace.text
    ]
    return max([TIGHT, *of_tokens])


def margins(made: go.Figure) -> tuple[float, float]:
    """The pixels that words need to the left and to the right of the panels."""
    notes = made.layout.annotations
    beside = [[widest(one.text, LETTER) + 8 for one in notes if one.xshift == shift] for shift in (-6, 6)]
    ticks = [text for axis in axes(made) for text in made.layout[axis.replace("y", "yaxis")].ticktext or []]
    last = made.layout.xaxis.range[1] - 1  # remarks on the last column stand to its right
    remarks = [
        widest(text, LETTER)
        for trace in made.data
        if "text" in trace.mode and trace.textposition == "middle right"
        for text, x in zip(trace.text, trace.x, strict=True)
        if x > last
    ]
    left = max([2.0, *beside[0], *(widest(text, LETTER) + 8 for text in ticks)])
    return left, max([2.0, *beside[1], *remarks])


def narrowed(made: go.Figure, column: float) -> go.Figure:
    """The figure with columns of so many pixels, its letters as large as before."""
    low, high = made.layout.xaxis.range
    left, right = margins(made)
    made.layout.margin = {**made.layout.margin.to_plotly_json(), "l": left, "r": right}
    made.layout.width = left + right + column * (high - low)
    return made


# ---- lines -------------------------------------------------------------------------------------------


def arranged(at: Frame, wide: float) -> tuple[list[list[Line]], Frame]:
    """(the lines in reading order, those side by side together; the frame, with narrower columns if a round
    needs them).
    """
    before, after = at.left, at.figure.layout.width - at.right
    if stairs(at) and rounds(at):
        longest = max(line.end - line.start for line in rounds(at))
        if longest + before > wide:
            at = squeezed(at, (wide - before) / longest)
        choices = [abreast(at, count, wide) for count in range(1, MAX_SIDE_BY_SIDE + 1)]
        return min((one for one in choices if one), key=lambda rows: total(at, rows)), at
    low, unit = at.scales["x"]
    columns, room = (at.right - at.left) / unit, wide - before
    if columns * unit + before + after <= wide + 0.5:
        return [[Line(at.left, at.right)]], at
    first = math.ceil(low - 0.5) + 0.5  # the first edge between two columns
    whole = math.floor(low + columns - first)
    every = per_line(unit, whole, first - low, room, after)
    edges = [at.x(first + every * i) for i in range(1, math.ceil(whole / every))]
    return [[Line(a, b)] for a, b in zip([at.left, *edges], [*edges, at.right], strict=True)], at


def per_line(unit: float, whole: int, lead: float, room: float, after: float) -> int:
    """The number of columns in a line. unit: pixels of a column; whole: columns of all lines; lead: columns
    before the first; room: pixels of a line; after: pixels of words to the right of the last one.
    """
    for lines in range(1, whole):
        every = math.ceil(whole / lines)
        if (every + lead) * unit <= room and (rest(whole, every) + LAST) * unit + after <= room:
            return every
    return 1


def rest(whole: int, every: int) -> int:
    """The number of columns in the last line."""
    return whole - every * (math.ceil(whole / every) - 1)


def squeezed(at: Frame, factor: float) -> Frame:
    """The frame with columns narrower by a factor."""
    at.figure.layout.width = at.left + (at.right - at.left) * factor + at.figure.layout.width - at.right
    return frame(at.figure)


def abreast(at: Frame, count: int, wide: float) -> list[list[Line]] | None:
    """The rounds in lines of which `count` are side by side; None if a round does not fit."""
    room = (wide - (count - 1) * ASIDE) / count - at.left
    lines = packed(rounds(at), room)
    if any(line.end - line.start > room + 0.5 for line in lines):
        return None
    down = math.ceil(len(lines) / count)  # read down the left column first, as a paper is
    return [lines[i::down] for i in range(down)]


def total(at: Frame, rows: list[list[Line]]) -> float:
    """The height of all lines in pixels."""
    return sum(max(line_height(at, line) for line in row) + between(at) for row in rows)


def between(at: Frame) -> float:
    """The pixels between two lines."""
    return OF_ROUNDS if stairs(at) else BETWEEN


def line_height(at: Frame, line: Line) -> float:
    """The height of a line in pixels, with the numbers below it if there are any."""
    top, bottom = band(at, line)
    return bottom - top + TICKS * any(line.start <= x <= line.end for x in ticks(at))


def ticks(at: Frame) -> list[float]:
    """The x pixels of the numbers below the panels."""
    axis = at.figure.layout.xaxis
    return [] if axis.visible is False else [at.x(value) for value in axis.tickvals or []]


def band(at: Frame, line: Line) -> tuple[float, float]:
    """The part of the figure's height that a line shows, without the numbers below: from the first words or
    marks to the last ones.
    """
    if line.last:
        return row_band(at, line)
    if any(
        trace.fill == "toself" and trace.meta and trace.meta["kind"] == "band" for trace in at.figure.data
    ):
        return at.top - OVER, at.bottom
    ends = [y for axis in axes(at.figure) for x, y in points(at, axis) if line.start <= x <= line.end]
    texts = [
        one.y - one.size for one in all_words(at) if one.place == "marks" and line.start <= one.x <= line.end
    ]
    return max(at.top - OVER, min([*ends, *texts], default=0) - OVER), min(
        at.bottom, max(ends, default=0) + 10
    )


# ---- drawing -----------------------------------------------------------------------------------------


def drawn(made: go.Figure, turned: list[Op], text: str, wide: float, width_mm: float) -> Printed:
    """The figure as SVG: legend, then the lines."""
    rows, at = arranged(frame(made), wide)
    soft = made.layout.template.layout.font.color
    said, pieces = [*all_words(at), *upright_words(at, turned)], []
    key, y = legend(made, wide)
    pieces += key
    content = [
        *grid(at),
        *(one for trace in made.data if "text" not in trace.mode for one in shapes(trace, at)),
    ]
    name = f"run{crc32(''.join(content).encode()):x}"
    across = (wide + ASIDE) / max(len(row) for row in rows)
    for row in rows:
        for place, line in enumerate(row):
            pieces += one_line(at, line, (place * across, y), name, said, wide)
        y += max(line_height(at, line) for line in row) + between(at)
    axis = made.layout.xaxis.title.text if made.layout.xaxis.visible is not False else ""
    y -= between(at) - 2
    if axis:
        pieces.append(
            words(
                axis,
                wide / 2 if len(rows[0]) == 1 else at.left,
                y + LETTER,
                LETTER,
                soft,
                "center" if len(rows[0]) == 1 else "left",
            )
        )
        y += LETTER * LINE
    y += 3
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width_mm:g}mm" height="{y * MM:.2f}mm" viewBox="0 0 {wide:.2f} {y:.2f}">'
        f"<desc>{escape(text)}</desc>"
        f'<rect width="{wide:.2f}" height="{y:.2f}" fill="{made.layout.template.layout.paper_bgcolor}"/>'
        f'{definitions(pieces)}<defs><g id="{name}">{"".join(content)}</g></defs>{"".join(pieces)}</svg>\n'
    )
    return Printed(svg, text, width_mm, y * MM)


def one_line(
    at: Frame, line: Line, corner: tuple[float, float], name: str, said: list[Words], wide: float
) -> Iterator[str]:
    """A line of the run: its part of the picture, and the words in and around it."""
    top, bottom = band(at, line)
    dx, dy = corner[0] + at.left - line.start, corner[1] - top
    over = OVER if line.start <= at.left else 0  # symbols at the outer edges are whole
    left, right = line.start - over, line.end + (OVER if line.end >= at.right else 0)
    yield (
        f'<svg class="line" x="{left + dx:.1f}" y="{corner[1]:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" viewBox="{left:.1f} {top:.1f} {right - left:.1f} {bottom - top:.1f}">'
        f'<use xlink:href="#{name}"/></svg>'
    )
    last, taken = line.end >= at.right - 1, []
    for one in said:
        if one.place == "below":
            if line.start <= one.x <= line.end:
                half = widest(one.text, LETTER) / 2
                x = min(max(one.x + dx, half), wide - half)
                yield words(one.text, x, corner[1] + bottom - top + LETTER + 2, LETTER, one.colour, "center")
            continue
        if not top <= one.y <= bottom + 1:
            continue
        if one.place == "left":
            yield words(one.text, corner[0] + at.left - 6, one.y + dy, one.size, one.colour, "right")
        elif one.place == "right" and last:
            yield words(one.text, one.x + dx, one.y + dy, one.size, one.colour)
        elif one.place == "marks" and line.start <= one.x < line.end:
            yield from among(one, dx, dy, wide, taken)


def among(one: Words, dx: float, dy: float, wide: float, taken: list[tuple[float, ...]]) -> Iterator[str]:
    """Words among the marks, unless they are a remark that would cover other words."""
    if one.turned:
        inner = words(one.text, 0, 0, one.size, one.colour, "right")
        yield f'<g transform="translate({one.x + dx:.1f} {one.y + dy:.1f}) rotate(-90)">{inner}</g>'
        return
    long = widest(one.text, one.size)
    narrow = min(1, max(NARROW, one.room / long)) if one.room and long else 1
    long *= narrow
    x = one.x + dx - long * {"left": 0, "right": 1}.get(one.anchor, 0.5)
    x = min(max(x, 0.5), wide - long - 0.5)
    lines = len(spans(one.text))
    box = (x, one.y + dy - 0.8 * one.size, x + long, one.y + dy + (LINE * (lines - 1) + 0.2) * one.size)
    if not one.room and any(
        box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken
    ):
        return
    taken.append(box)
    centre = {"left": x, "right": x + long}.get(one.anchor, x + long / 2)
    yield words(one.text, centre, one.y + dy, one.size, one.colour, one.anchor, narrow)


def all_words(at: Frame) -> Iterator[Words]:
    """All words in and around the panels, tokens before remarks."""
    layout, unit = at.figure.layout, at.scales["x"][1]
    soft = layout.template.layout.yaxis.tickfont.color
    found = [one for trace in at.figure.data if "text" in trace.mode for one in trace_words(trace, at, unit)]
    yield from sorted(found, key=lambda one: not one.room)
    for one in layout.annotations:
        if one.yref != "paper":
            side = "left" if one.xshift == -6 else "right"
            y = at.y(one.y, one.yref) + 0.35 * LETTER
            yield Words(one.text, at.right + 6, y, LETTER, one.font.color, side, side)
    for axis in axes(at.figure):
        own = layout[axis.replace("y", "yaxis")]
        for value, label in zip(own.tickvals or [], own.ticktext or [], strict=True):
            if own.visible is not False:
                yield Words(label, 0, at.y(value, axis) + 4, LETTER, soft, "right", "left")
    for x, label in zip(ticks(at), layout.xaxis.ticktext or [], strict=False):
        yield Words(label, x, at.bottom, LETTER, soft, "center", "below")


def trace_words(trace: go.Scatter, at: Frame, unit: float) -> Iterator[Words]:
    """The words of a trace: tokens have a column as room, remarks none."""
    down, side = trace.textposition.split()
    size, colour, token = (
        max(LETTER, trace.textfont.size),
        trace.textfont.color,
        trace.textfont.family == MONO,
    )
    anchor = {"left": "right", "right": "left"}.get(side, side)
    own = token and anchor == "center"
    for label, x, y in zip(trace.text, trace.x, trace.y, strict=True):
        over = LINE * label.count("<br>")
        lift = {"top": -0.3 - over, "middle": 0.35 - over / 2, "bottom": 1}[down] * size
        room = unit * max(1, len(label)) if at.scales["x"][0] == 0 and unit < 9 else unit - 3
        yield Words(label, at.x(x), at.y(y, trace.yaxis or "y") + lift, size, colour, anchor, room=room * own)


def upright_words(at: Frame, tokens: list[Op]) -> Iterator[Words]:
    """Tokens that read upwards, and end at the top of their box."""
    ink = at.figure.layout.template.layout.font.color
    for one in tokens:
        top = at.y(one["top"], one["axis"]) + 3
        if len(one["text"]) == 1:  # a comma on its side is nothing that one can read
            yield Words(one["text"], at.x(one["x"]), top + 0.8 * LETTER, LETTER, ink, "center", room=TIGHT)
        else:
            x = at.x(one["x"]) + 0.35 * LETTER
            yield Words(one["text"], x, top, LETTER, ink, "right", turned=True)


def grid(at: Frame) -> Iterator[str]:
    """The lines of the scales."""
    colour = at.figure.layout.template.layout.yaxis.gridcolor
    for axis in axes(at.figure):
        own = at.figure.layout[axis.replace("y", "yaxis")]
        for value in own.tickvals or []:
            yield f'<path d="M{at.left:.1f} {at.y(value, axis):.1f}H{at.right:.1f}" stroke="{colour}"/>'


def legend(made: go.Figure, wide: float) -> tuple[list[str], float]:
    """(symbols and names of what is drawn, in rows; the pixels that they take)."""
    ink, x, y, pieces = made.layout.template.layout.font.color, 1.0, 9.0, []
    states = theme("light").state
    for trace in made.data:
        if not trace.showlegend or not trace.name:
            continue
        long = 23 + widest(trace.name, LETTER)
        if x > 1 and x + long > wide:
            x, y = 1.0, y + 16
        filled, known = trace.fill == "toself", trace.meta or {}
        if "markers" in trace.mode:
            colour = trace.marker.color
            pieces.append(glyph(trace.marker.symbol or "circle", x + 9, y, trace.marker.size / 2, colour, 1))
        else:
            corners = [(x, y - 6), (x + 18, y - 6), (x + 18, y + 6), (x, y + 6), (x, y - 6)]
            slanted = [(x + 4, y - 5), (x + 7, y + 5), None, (x + 10, y - 5), (x + 13, y + 5)]
            line = slanted if known.get("kind") == "tick" else [(x, y), (x + 18, y)]
            pieces.append(path(trace, corners if filled else line))
        if filled and known.get("kind") == "cell" and known.get("state") in GLYPHED:
            dark = known.get("fill") == "filled"
            inside = theme("light").surface["on_fill"] if dark else states[known["state"]]["color"]
            pieces.append(words(states[known["state"]]["glyph"], x + 9, y + 4, LETTER, inside, "center"))
        pieces.append(words(trace.name, x + 22, y + 4, LETTER, ink))
        x += long + 10
    return pieces, y + 16 if pieces else 2.0
