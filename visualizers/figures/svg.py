"""A figure of a view as SVG without a browser: the shapes, words and colours that plotly.js would draw."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape, unescape
from itertools import groupby

import plotly.graph_objects as go

from visualizers.figures.theme import SANS
from visualizers.figures.wrapping import LINE

DASHES = {"dash": "9,9", "dot": "3,3"}  # as plotly.js draws them at a width of 3
SHAPES = {  # corners of symbols, for a radius of 1
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    "triangle-up": [(-1.15, 0.67), (1.15, 0.67), (0, -1.33)],
    "triangle-down": [(-1.15, -0.67), (1.15, -0.67), (0, 1.33)],
    "pentagon": [(0, -1), (0.95, -0.31), (0.59, 0.81), (-0.59, 0.81), (-0.95, -0.31)],
    "star": [
        (0, -1.4), (0.31, -0.43), (1.33, -0.43), (0.51, 0.16), (0.82, 1.13),
        (0, 0.53), (-0.82, 1.13), (-0.51, 0.16), (-1.33, -0.43), (-0.31, -0.43),
    ],
    "x-thin": [],
}  # fmt: skip
ANCHORS = {"left": "start", "center": "middle", "right": "end"}
EDGE = 10  # pixels left of titles
WORDS = re.compile(r'<text x="[^"]*" y="[^"]*"([^>]*)>')  # the attributes of words but for their place
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # in XML


@dataclass(frozen=True)
class Frame:
    """The panels of a figure in pixels; `scales`: axis -> (value at its origin, pixels per unit)."""

    figure: go.Figure
    left: float
    right: float
    top: float
    bottom: float
    scales: dict[str, tuple[float, float]]

    def x(self, value: float) -> float:
        return self.left + (value - self.scales["x"][0]) * self.scales["x"][1]

    def y(self, value: float, axis: str = "y") -> float:
        """The y pixel of a value on a panel's axis; on "paper" 0 is the bottom of all panels, 1 the top."""
        return self.bottom - (value - self.scales[axis][0]) * self.scales[axis][1]


def frame(figure: go.Figure) -> Frame:
    """The frame of a figure of `scene_figure`."""
    layout, margin = figure.layout, figure.layout.margin
    left, right, top, bottom = margin.l, layout.width - margin.r, margin.t, layout.height - margin.b
    low, high = layout.xaxis.range
    scales = {"paper": (0, bottom - top), "x": (low, (right - left) / (high - low))}
    for axis in axes(figure):
        own = layout[axis.replace("y", "yaxis")]
        (low, high), (foot, head) = own.range, own.domain or (0, 1)
        unit = (head - foot) * (bottom - top) / (high - low)
        scales[axis] = (low - foot * (bottom - top) / unit, unit)
    return Frame(figure, left, right, top, bottom, scales)


def svg(figure: go.Figure, foot: str = "") -> str:
    """The whole figure; `foot`: a line of text below it."""
    layout, at = figure.layout, frame(figure)
    wide, high = layout.width, layout.height + (20 if foot else 0)
    ink = layout.template.layout.font.color
    drawn = [piece for axis in axes(figure) for piece in scale(axis, at)]
    drawn += [*all_shapes(at), *(note(one, at) for one in layout.annotations), *heading(figure)]
    if foot:
        drawn.append(text(escape(foot), EDGE, high - 12, size=12, colour=ink))
    return document(figure, f"0 0 {wide:g} {high:g}", drawn)


def all_shapes(at: Frame) -> Iterator[str]:
    """The SVG elements of all marks."""
    return (piece for trace in at.figure.data for piece in shapes(trace, at))


def heading(figure: go.Figure) -> Iterator[str]:
    """Title, subtitle and legend."""
    layout = figure.layout
    yield text(layout.title.text, EDGE, 26, size=17, colour=layout.template.layout.font.color)
    soft = layout.template.layout.xaxis.tickfont.color
    yield text(layout.title.subtitle.text, EDGE, 45, size=12, colour=soft)
    yield from legend(figure, EDGE, 66)


def document(figure: go.Figure, box: str, drawn: list[str]) -> str:
    """The SVG document: background, the pieces drawn, and a description for screen readers."""
    x, y, wide, high = box.split()
    caption = (figure.layout.meta or {}).get("caption", "")
    ground = figure.layout.template.layout.paper_bgcolor
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="{box}" '
        f'font-family="{escape(SANS)}"><desc>{clean(caption)}</desc>'
        f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" fill="{ground}"/>'
        f"{''.join(grouped(drawn))}</svg>\n"
    )


def grouped(drawn: Iterable[str]) -> Iterator[str]:
    """The pieces, neighbouring words of one look in a group that has it: half of a picture's bytes."""
    for look, pieces in groupby(drawn, key=look_of):
        if look:
            yield f"<g{look}>{''.join(piece.replace(look, '', 1) for piece in pieces)}</g>"
        else:
            yield from pieces


def look_of(piece: str) -> str:
    """The attributes of an element of words but for its place; "" for all other elements."""
    found = WORDS.match(piece)
    return found[1] if found else ""


# ---- marks -------------------------------------------------------------------------------------------------


def shapes(trace: go.Scatter, at: Frame) -> Iterator[str]:
    """The SVG elements of one trace, whose fields are read once: Plotly takes long to look one up."""
    axis, mode = trace.yaxis or "y", trace.mode
    points = [None if x is None else (at.x(x), at.y(y, axis)) for x, y in zip(trace.x, trace.y, strict=True)]
    if "lines" in mode:
        yield path(trace, points)
    if "markers" in mode and trace.marker.opacity != 0:
        yield from symbols(trace, points)
    if "text" in mode:
        down, side = trace.textposition.split()
        font, cut = trace.textfont, trace.customdata
        size, colour, family = font.size, font.color, font.family
        cut = [""] * len(points) if cut is None else cut
        for label, whole, (x, y) in zip(trace.text, cut, points, strict=True):
            over = LINE * label.count("<br>")  # lines above the last one
            lift = {"top": -0.3 - over, "middle": 0.35 - over / 2, "bottom": 1}[down] * size
            anchor = {"left": "right", "right": "left"}.get(
                side, side
            )  # a text to the left of its point ends there
            drawn = text(label, x, y + lift, size, colour, anchor, family)
            yield f"<g><title>{clean(whole)}</title>{drawn}</g>" if whole else drawn


def path(trace: go.Scatter, points: list[tuple[float, float] | None]) -> str:
    """All lines or areas of a trace as one SVG path."""
    steps = [stroke(list(piece)) for there, piece in groupby(points, key=bool) if there]
    line, fill = trace.line, trace.fillcolor if trace.fill == "toself" else None
    colour, width, dash = line.color, line.width, line.dash
    drawn = f' stroke="{colour}" stroke-width="{width:g}"' if width and colour else ""
    dash = f' stroke-dasharray="{DASHES[dash]}"' if dash in DASHES else ""
    fill = fill if fill and "0,0,0,0" not in fill else "none"
    return f'<path d="{"".join(steps)}" fill="{fill}"{drawn}{dash}{faint(trace.opacity)}/>'


def stroke(piece: list[tuple[float, float]]) -> str:
    """The path data of a line through points; short for axis-aligned boxes, since most shapes are boxes."""
    (x0, y0), (x1, y1) = piece[0], piece[len(piece) // 2]
    if piece == [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]:
        return f"M{x0:.1f} {y0:.1f}h{x1 - x0:.1f}v{y1 - y0:.1f}h{x0 - x1:.1f}z"
    return "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(piece))


def symbols(trace: go.Scatter, points: list[tuple[float, float]]) -> Iterator[str]:
    """The symbols of a trace."""
    marker = trace.marker
    symbol, radius, colour, width = marker.symbol, marker.size / 2, marker.color, marker.line.width
    angles = [0] * len(points) if marker.angle is None else marker.angle
    for (x, y), angle in zip(points, angles, strict=True):
        yield glyph(symbol, x, y, radius, colour, width, angle)


def glyph(
    symbol: str, x: float, y: float, radius: float, colour: str, width: float | None, angle: float = 0
) -> str:
    """One symbol."""
    shape, is_open = symbol.removesuffix("-open"), symbol.endswith("-open")
    fill, stroke = (
        ("none" if is_open else colour),
        f'stroke="{colour}" stroke-width="{width or (1 if is_open else 0):g}"',
    )
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" {stroke}/>'
    turned = f' transform="rotate({angle:.0f} {x:.1f} {y:.1f})"' if angle else ""
    if shape == "x-thin":
        d, r = f"M{x - radius:.1f} {y - radius:.1f}", 2 * radius
        d += f"l{r:g} {r:g}m{-r:g} 0l{r:g} {-r:g}"
    else:
        d = "M" + "L".join(f"{x + dx * radius:.1f} {y + dy * radius:.1f}" for dx, dy in SHAPES[shape]) + "Z"
    return f'<path d="{d}" fill="{fill}" {stroke}{turned}/>'


def faint(opacity: float | None) -> str:
    """The opacity attribute; "" if opaque."""
    return "" if opacity in (None, 1) else f' opacity="{opacity:g}"'


# ---- words -------------------------------------------------------------------------------------------------


def clean(marked: str) -> str:
    """Text for SVG, without Plotly's tags."""
    return escape(FORBIDDEN.sub("", unescape(re.sub(r"</?(?:b|br|span)\b[^<>]*>", "", marked))))


def text(
    marked: str | None, x: float, y: float, size: float, colour: str, anchor: str = "left", family: str = ""
) -> str:
    """Words with Plotly's tags <b> and <br>; `y`: the baseline of the first line."""
    spans = []
    for number, line in enumerate((marked or "").split("<br>")):
        parts = re.split(r"<b>(.*?)</b>", line)  # every other one is bold
        inner = "".join(
            f'<tspan font-weight="700">{clean(part)}</tspan>' if i % 2 else clean(part)
            for i, part in enumerate(parts)
        )
        spans.append(f'<tspan x="{x:.0f}" dy="{LINE * size:g}">{inner}</tspan>' if number else inner)
    face = f' font-family="{escape(family)}"' if family and family != SANS else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size:g}" fill="{colour}" '
        f'text-anchor="{ANCHORS[anchor]}" xml:space="preserve"{face}>{"".join(spans)}</text>'
    )


def note(one: go.layout.Annotation, at: Frame) -> str:
    """An annotation next to or above a panel."""
    x = at.left + one.x * (at.right - at.left) + (one.xshift or 0)
    if one.yref == "paper" and one.y == 0:  # the sentence below all panels
        x = EDGE
    y, size, lines = at.y(one.y, one.yref) - (one.yshift or 0), one.font.size, one.text.count("<br>") + 1
    tall = LINE * size * lines
    top = {"top": y, "bottom": y - tall}.get(one.yanchor, y - tall / 2)
    return text(one.text, x, top + size, size, one.font.color, one.xanchor)


def legend(figure: go.Figure, x: float, y: float, max_width: float = 0) -> Iterator[str]:
    """Symbols and names of the traces in the legend, in rows of `max_width` pixels (0: the figure's)."""
    soft = figure.layout.template.layout.font.color
    for trace in figure.data:
        if not trace.showlegend or not trace.name:
            continue
        wide = 42 + 6.2 * len(unescape(trace.name))
        if x > EDGE and x + wide > (max_width or figure.layout.width):
            x, y = EDGE, y + 17
        if "markers" in trace.mode:
            yield glyph(
                trace.marker.symbol or "circle", x + 9, y, trace.marker.size / 2, trace.marker.color, 1
            )
        else:
            filled = trace.fill == "toself"
            points = (
                [(x, y - 6), (x + 18, y - 6), (x + 18, y + 6), (x, y + 6), (x, y - 6)]
                if filled
                else [(x, y), (x + 18, y)]
            )
            yield path(trace, points)
        yield text(trace.name, x + 24, y + 4, 11, soft)
        x += wide


def axes(figure: go.Figure) -> list[str]:
    """The names of the y axes of all panels: words stand beside those too in which nothing is drawn."""
    return [name.replace("yaxis", "y") for name in figure.layout.to_plotly_json() if name.startswith("yaxis")]


def scale(axis: str, at: Frame) -> Iterator[str]:
    """Grid, ticks and title of a panel; for the first one also the ticks of x."""
    layout = at.figure.layout
    shared, own = layout.template.layout.yaxis, layout[axis.replace("y", "yaxis")]
    soft = shared.tickfont.color
    if own.visible is not False:
        for value, label in zip(own.tickvals or [], own.ticktext or [], strict=True):
            y = at.y(value, axis)
            line = f'M{at.left:g} {y:.1f}H{at.right:g}" stroke="{shared.gridcolor}"'
            yield f'<path d="{line}/>'
            yield text(label, at.left - 6, y + 4, 11, soft, "right")
    if axis == "y" and layout.xaxis.visible:
        for value, label in zip(layout.xaxis.tickvals or [], layout.xaxis.ticktext or [], strict=True):
            yield text(label, at.x(value), at.bottom + 16, 11, soft, "center")
        yield text(layout.xaxis.title.text, (at.left + at.right) / 2, at.bottom + 34, 12, soft, "center")
