"""What all charts share: one layout, lanes distinguished by dash and marker, a sentence per point, a caption.

`layout.meta["caption"]` describes every chart in words for people who cannot see it. A chart fills the width
that it is given, down to a phone's.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from visualizers.figures.theme import SANS, Theme, template, theme
from visualizers.figures.traces import plain, scatter

HEIGHT = 320  # pixels of a chart whose legend has one row
REST, LINE = 50, 42  # characters per line of a subtitle and of a hover card, to fit a phone
NAME, ROW = 30, 19  # characters of a name in the legend, pixels of a row of names
BAR = 22  # characters per line of a bar's name
LETTER = 8  # maximum pixels of a bold letter
NEAR = (0.03, 0.07)  # shares of the axes: line ends closer than this share one label
MINUS = "−"


def chart(
    title: str, rest: str, caption: str, look: str, x: dict, y: dict, names: int = 0, **layout: object
) -> go.Figure:
    """An empty chart: a bold title, `rest` as a grey subtitle, axes, a caption.

    names: the number of entries in the legend, 0 for no legend. Raises Refusal with one sentence for an
    unknown look.
    """
    soft = {"size": 12, "color": theme(look).surface["soft"]}
    above = 46 + 15 * len(textwrap.wrap(rest, REST))
    shared = {"automargin": True, "title": {"standoff": 8}}
    own = {
        "title": {"subtitle": {"text": _wrapped(rest, REST), "font": soft}},
        "margin": {"l": 48, "r": 26, "t": above, "b": 40},
        "legend": {
            "orientation": "h",
            "x": 0.01,
            "xref": "container",
            "itemwidth": 40,
        },
        "showlegend": names > 0,
        "xaxis": _joined(shared, x),
        "yaxis": _joined(shared, y),
        "hoverdistance": -1,
        "uirevision": title,
        "bargap": 0.24,
        "barmode": "relative",
        "uniformtext": {"minsize": 8, "mode": "hide"},
    }
    frame = _frame(theme(look), title, caption, HEIGHT + ROW * max(0, names - 1))
    return go.Figure(layout=_merged(frame, own | layout))


def framed(colours: Theme, title: str, caption: str, height: int, **layout: object) -> go.Figure:
    """An empty figure: a bold title, a caption, room for axes, and a legend below with one name per line."""
    return go.Figure(layout=_merged(_frame(colours, title, caption, height), layout))


def _frame(colours: Theme, title: str, caption: str, height: int) -> dict:
    """The layout that all figures share."""
    return {
        "template": template(colours.name),
        "meta": {"caption": caption},
        "title": heading(title),
        "height": height,
        "margin": {"l": 54, "r": 24, "t": 48, "b": 44},
        "hoverlabel": {"font": {"family": SANS}},
        "legend": {
            "orientation": "v",
            "x": 0,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "tracegroupgap": 0,
            "title": {"text": ""},
        },
    }


def _merged(base: dict, more: dict) -> dict:
    """`base` updated by `more`, recursively for dictionaries. Plotly's `update_layout`
    does the same, but takes several times as long as to make the whole figure.
    """
    both = {
        name: _merged(base[name], more[name])
        for name in base.keys() & more.keys()
        if isinstance(base[name], dict) and isinstance(more[name], dict)
    }
    return base | more | both


def heading(title: str) -> dict:
    """A bold title at the top left of a figure."""
    return {
        "text": f"<b>{plain(title)}</b>",
        "font": {"size": 13},
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "pad": {"t": 12, "l": 10},
    }


def _joined(shared: dict, own: dict) -> dict:
    """Settings of an axis: the shared ones and its own, whose `words` are its title."""
    words = own.get("words")
    rest = {name: value for name, value in own.items() if name != "words"}
    return shared | rest | {"title": shared["title"] | {"text": plain(words or "")}}


def nothing(title: str, sentence: str, look: str) -> go.Figure:
    """A chart without data, with a sentence that says so."""
    away = {"visible": False}
    made = chart(title, "", sentence, look, away, away)
    note = {"text": hover(sentence), "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    return made.add_annotation(showarrow=False, font={"color": theme(look).surface["soft"]}, **note)


def caption(figure: go.Figure) -> str:
    """A figure's description in words, without markup."""
    return figure.layout.meta["caption"]


def whole(words: str, largest: float) -> dict:
    """An axis of whole numbers up to `largest`."""
    return {"words": words, "tickformat": ",d", "dtick": 1 if largest <= 12 else None}


# ---- words -------------------------------------------------------------------------------------------


def hover(sentence: str) -> str:
    """A sentence for a hover card: short lines, without markup."""
    return _wrapped(sentence, LINE)


def _wrapped(text: str, width: int) -> str:
    return "<br>".join(map(plain, textwrap.wrap(text, width)))


def number(value: float | None, digits: int) -> str:
    """A number with this many decimals and a true minus sign; a dash for None."""
    return "—" if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def value_text(value: float | str | None) -> str:
    """A table value as text: a number with at most three decimals; text unchanged."""
    if isinstance(value, str):
        return value
    return number(value, 3 if value is not None and value % 1 else 0)


def significant(value: float) -> str:
    """A number with about three significant digits and thousands separators."""
    return f"{value:,.0f}" if value >= 100 else f"{float(f'{value:.3g}'):g}"


def counted(value: int, word: str) -> str:
    """`1 round`, `2 rounds`."""
    return f"{value:,} {word}{'' if value == 1 else 's'}"


# ---- traces ------------------------------------------------------------------------------------------


def lane_line(
    lane: int | str, label: str, index: int, x: Sequence, y: Sequence, colours: Theme, **more: object
) -> go.Scatter:
    """A lane's line; what is pointed at is read by `reader`. `index` chooses dash and marker: after one of
    each marker they come again, hollow and with other dashes.
    """
    ink, again = colours.surface["text"], index // len(colours.marks)
    marker = {
        "symbol": _of(colours.marks, index + again),
        "size": 7,
        "color": colours.surface["bg"] if again else ink,
        "line": {"color": ink, "width": 1.3},
        "maxdisplayed": 7,
    }
    return go.Scatter(
        x=list(x),
        y=list(y),
        name=plain(textwrap.shorten(f"{lane} {label}".strip(), NAME, placeholder="…")),
        mode="lines+markers",
        line={"color": ink, "width": 1.8, "dash": _of(colours.dashes, index), **more.pop("line", {})},
        marker=marker | more.pop("marker", {}),
        legendgroup=str(lane),
        meta={"lane": lane},
        **{"hoverinfo": "skip"} | more,
    )


def _of(known: list[str], index: int) -> str:
    return known[index % len(known)]


def dotted(name: str, x: Sequence, y: Sequence, colours: Theme, **more: object) -> go.Scatter:
    """A reference line, dotted and grey."""
    line = {"color": colours.surface["soft"], "width": 1.6, "dash": "dot"}
    return go.Scatter(
        x=list(x),
        y=list(y),
        name=name,
        mode="lines",
        line=line,
        hoverinfo="skip",
        showlegend=bool(name),
        **more,
    )


def ends(figure: go.Figure, lines: Sequence[go.Scatter], colours: Theme, gap: str = " ") -> go.Figure:
    """Adds lines with their lanes' numbers at the ends; ends close together share a label. gap: spaces before
    it.
    """
    last = [(one.meta["lane"], *_last(one)) for one in lines if _last(one)]
    place = math.log if figure.layout.xaxis.type == "log" else float
    wide = _span([place(x) for x, _ in _points(lines)])
    high = _span(list(figure.layout.yaxis.range or (y for _, y in _points(lines))))
    labels: list[tuple[float, float, list[str]]] = []
    for lane, x, y in last:
        near = (
            named
            for at, level, named in labels
            if abs(place(at) - place(x)) < NEAR[0] * wide and abs(level - y) < NEAR[1] * high
        )
        if same := next(near, None):
            same.append(str(lane))
        else:
            labels.append((x, y, [str(lane)]))
    texts = [gap + ", ".join(named) for _, _, named in labels]
    font = {"size": 12, "weight": 700, "color": colours.surface["text"]}
    label = scatter(
        x=[x for x, _, _ in labels],
        y=[y for _, y, _ in labels],
        text=texts,
        textfont=font,
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_traces([*lines, label])
    longest = max(map(len, texts), default=0)
    figure.layout.margin.r = max(figure.layout.margin.r, 8 + LETTER * longest)
    return figure


def _points(lines: Iterable[go.Scatter]) -> list[tuple[float, float]]:
    return [(x, y) for one in lines for x, y in zip(one.x, one.y, strict=True) if y is not None]


def _last(line: go.Scatter) -> tuple[float, float] | None:
    return next(iter(_points([line])[::-1]), None)


def _span(values: list[float]) -> float:
    return max(values) - min(values) or 1 if values else 1


def reader(
    figure: go.Figure, places: Sequence[float], sentences: Sequence[str], axes: Sequence[str] = ("y",)
) -> go.Figure:
    """Shows on hover the sentence of the x position nearest to the pointer, with a hairline there.

    places: x positions; axes: the y axes of the panels in which this works.
    """
    levels = {
        axis: max(
            (y for _, y in _points(one for one in figure.data if (one.yaxis or "y") == axis)), default=0
        )
        for axis in axes
    }
    hovers = [hover(one) for one in sentences]
    figure.add_traces(
        [
            scatter(
                x=list(places),
                y=[level] * len(places),
                yaxis=axis,
                mode="markers",
                name="",
                marker={"opacity": 0, "size": 1},
                hovertext=hovers,
                hoverinfo="text",
                showlegend=False,
                meta={"reads": True},
            )
            for axis, level in levels.items()
        ]
    )
    figure.layout.hovermode = "x"
    figure.layout.xaxis.showspikes = True  # the theme's hairline
    return figure


def greys(amounts: list[str]) -> list[list]:
    """The palette's paler greys as a Plotly colour scale; text is readable on each."""
    pale = amounts[:4]
    return [[at / (len(pale) - 1), colour] for at, colour in enumerate(pale)]


# ---- bars --------------------------------------------------------------------------------------------


def bar_look(state: str, colours: Theme) -> dict:
    """The fill of a state's bar: solid if accepted or the target's own, hollow if rejected, dotted if
    untested.
    """
    colour, ground = colours.state[state]["color"], colours.surface["bg"]
    if state in ("unreached", "pruned"):
        pattern = {
            "shape": "." if state == "unreached" else "/",
            "fgcolor": colour,
            "bgcolor": ground,
            "size": 5,
            "solidity": 0.35,
        }
        return {"color": colour, "pattern": pattern, "line": {"color": colour, "width": 1}}
    if state == "rejected":
        return {"color": ground, "line": {"color": colour, "width": 1.4}}
    return {"color": colour, "line": {"width": 0}}


def upwards() -> dict:
    """A y axis of names, the first at the top."""
    return {"autorange": "reversed", "type": "category"}


def across(names: list[str], values: list[float], hovers: list[str]) -> dict:
    """Horizontal bars with wrapped names, hover sentences, and text after the bars."""
    return {
        "orientation": "h",
        "x": values,
        "y": [_wrapped(one, BAR) for one in names],
        "hovertext": [hover(one[0].upper() + one[1:] + ".") for one in hovers],
        "hoverinfo": "text",
        "textposition": "outside",
        "cliponaxis": False,
        "showlegend": False,
    }
