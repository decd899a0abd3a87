"""Figures of stored experiments: curves, spreads, boards and clouds. Maps and messages have files of their
own.

Takes the plain data of an answer (assets/experiments). Series differ by dash and marker, amounts are grey.
`layout.meta["caption"]` describes a figure in words.
"""

import math
import textwrap
from collections.abc import Callable

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from visualizers.figures.charts import ROW, framed, hover, lane_line, value_text
from visualizers.figures.experiment_maps import heat, tokens
from visualizers.figures.experiment_messages import messages
from visualizers.figures.syntax_trees import bars, trees
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain

AXIS = 112  # pixels between two axes of a board
FAR = 0.05  # share of a cloud's points that may lie beyond its left edge
LABEL, BESIDE = (
    14,
    0.04,
)  # pixels from a line's number to the next; share of the width in which they could meet
TIMES = 40  # iterations; enough to separate ten numbers


def figures(answer: dict, look: str = "light") -> list[go.Figure]:
    """All figures of an answer, in their order: its curves, its pictures, its messages.

    Passages of text are no figures and left out. Raises Refusal with one sentence for an unknown look.
    """
    colours = theme(look)
    made = [curves(answer["chart"], colours)] if answer.get("chart") else []
    made += [
        PICTURES[one["kind"]](one, answer, colours)
        for one in answer.get("pictures", [])
        if one["kind"] in PICTURES
    ]
    return made + ([messages(answer, colours)] if answer.get("messages") else [])


# ---- curves --------------------------------------------------------------------------------------------


def curves(chart: dict, colours: Theme) -> go.Figure:
    """Curves over one x axis, with whiskers where a value has an interval."""
    lines, log = chart["lines"], chart.get("log")
    points = [point for line in lines for point in line["points"] if point[1] is not None]
    values = [value for point in points for value in point[1:]]
    low, high = min(values), max(values)
    bottom = low - 0.08 * (high - low) if low < 0 or low > 0.4 * high else 0
    places = sorted({point[0] for point in points})
    x = {"title": {"text": plain(chart["x"]), "standoff": 6}, "type": "log" if log else "linear"}
    if log:
        x |= {"tickmode": "array", "tickvals": [n * 10**k for k in range(-3, 9) for n in (1, 2, 5)]}
    elif len(places) < 13 and all(float(place).is_integer() for place in places):
        x |= {"tickmode": "array", "tickvals": places}
    shared = len(places) < 0.7 * len(points)  # at most x positions several lines have a value
    below = ROW * len(lines)  # one name per line, since a phone has no more room
    figure = framed(
        colours,
        chart["title"],
        curves_text(chart),
        290 + below,
        xaxis=x,
        yaxis={"title": {"text": plain(chart["y"])}, "range": [bottom, high + 0.05 * abs(high)]},
        hovermode="x unified" if shared else "closest",
        showlegend=True,
    )
    figure.update_layout(margin={"b": 52 + below})
    figure.add_traces([curve(line, at, colours) for at, line in enumerate(lines)])
    return figure.update_layout(annotations=end_numbers(figure, colours))


def curve(line: dict, index: int, colours: Theme) -> go.Scatter:
    """One line: dash and marker by its number, and on hover its value with the interval, if there is one."""
    points = line["points"]
    between = [point[2:4] if len(point) > 2 else None for point in points]
    number, label = index + 1, line["label"]
    return lane_line(
        number,
        label,
        index,
        [point[0] for point in points],
        [point[1] for point in points],
        colours,
        line={"width": 1.6},
        marker={"size": 7 if len(points) < 40 else 5, "maxdisplayed": 24},
        cliponaxis=False,
        error_y=whiskers(points, colours) if any(between) else None,
        customdata=[
            "" if one is None else f" ({value_text(one[0])} to {value_text(one[1])})" for one in between
        ],
        hoverinfo=None,
        hovertemplate=f"{plain(label)}: %{{y:.3f}}%{{customdata}}<extra></extra>",
    ).update(name=plain(f"{number} {label}"))  # the full name, since each has a line of the legend


def end_numbers(figure: go.Figure, colours: Theme) -> list[dict]:
    """Annotations with each line's number after its end, moved apart where ends are close."""
    log = figure.layout.xaxis.type == "log"
    ends = []
    for number, line in enumerate(figure.data, 1):
        x, y = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None][-1]
        ends.append((number, math.log10(x) if log else x, y))
    places = [x for line in figure.data for x in line.x]
    wide = math.log10(max(places) / min(places)) if log else max(places) - min(places)
    low, high = figure.layout.yaxis.range
    margin = figure.layout.margin
    pixels = (figure.layout.height - margin.t - margin.b) / (high - low)
    moved = apart([(x / (wide or 1), (y - low) * pixels) for _, x, y in ends])
    return [
        {
            "text": f"<b>{number}</b>",
            "x": x,
            "y": y,
            "xanchor": "left",
            "xshift": 6,
            "yshift": shift,
            "showarrow": False,
            "borderpad": 0,
            "bgcolor": colours.surface["bg"],
            "font": {"size": 12, "color": colours.surface["text"]},
        }
        for (number, x, y), shift in zip(ends, moved, strict=True)
    ]


def apart(ends: list[tuple[float, float]]) -> list[float]:
    """How many pixels each end [share of the width, pixels above the axis] moves so that neighbours are a
    line apart, and none is below the axis.
    """
    places = [up for _, up in ends]
    order = sorted(range(len(ends)), key=lambda at: (places[at], -at))  # among equal ones the first is on top
    for _ in range(TIMES):
        for n, below in enumerate(order):
            for above in order[n + 1 :]:
                lack = LABEL - (places[above] - places[below])
                if lack > 0 and abs(ends[above][0] - ends[below][0]) < BESIDE:
                    places[below] = max(LABEL / 2, places[below] - lack / 2)
                    places[above] = max(places[below] + LABEL, places[above] + lack / 2)
    for n, below in enumerate(order):  # many at one point on the axis still end up close
        for above in order[n + 1 :]:
            if abs(ends[above][0] - ends[below][0]) < BESIDE:
                places[above] = max(places[above], places[below] + LABEL)
    return [round(place - up, 1) for place, (_, up) in zip(places, ends, strict=True)]


def whiskers(points: list[list], colours: Theme) -> dict:
    """The intervals of points [x, y, low, high]."""
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1,
        "width": 3,
        "color": colours.surface["soft"],
        "array": [p[3] - p[1] for p in points],
        "arrayminus": [p[1] - p[2] for p in points],
    }


def curves_text(chart: dict) -> str:
    """The first and last point of each curve, in words."""
    lines = []
    for line in chart["lines"]:
        known = [point for point in line["points"] if point[1] is not None]
        if not known:
            continue
        ends = [f"{value_text(one[1])} at {value_text(one[0])}" for one in (known[0], known[-1])]
        lines.append(f"{line['label']}: " + (f"from {ends[0]} to {ends[1]}" if len(known) > 1 else ends[0]))
    return f"{chart['title']}: {chart['y']} over {chart['x']}. {'; '.join(lines)}."


# ---- spreads, boards, clouds ---------------------------------------------------------------------------


def spread(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """A track for each row: a marker for each name, and a line from the lowest to the highest value."""
    rows, names, ink = picture["rows"], picture["names"], colours.surface["text"]
    labels = [plain(row["label"]) for row in rows]
    lines = [
        row["label"]
        + ": "
        + ", ".join(f"{name} {value_text(v)}" for name, v in zip(names, row["values"], strict=True))
        for row in rows
    ]
    caption = f"{picture['title']}: {picture['x']}, of {len(rows)} rows. First {lines[0]}; last {lines[-1]}."
    figure = framed(
        colours,
        picture["title"],
        caption,
        100 + 22 * len(rows) + ROW * len(names),
        hovermode="closest",
        showlegend=True,
        xaxis={"title": {"text": plain(picture["x"]), "standoff": 6}},
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
    )
    figure.update_layout(margin={"b": 52 + ROW * len(names)})
    for label, row in zip(labels, rows, strict=True):
        figure.add_scatter(
            x=[min(row["values"]), max(row["values"])],
            y=[label, label],
            mode="lines",
            hoverinfo="skip",
            line={"color": colours.surface["soft"], "width": 1},
            showlegend=False,
        )
    looks = (("diamond", colours.surface["bg"]), ("circle", ink), ("line-ns", ink))
    for at, (name, (symbol, fill)) in enumerate(zip(names, looks, strict=False)):
        figure.add_scatter(
            x=[row["values"][at] for row in rows],
            y=labels,
            mode="markers",
            name=plain(name),
            marker={"symbol": symbol, "size": 9, "color": fill, "line": {"color": ink, "width": 1.5}},
            hovertext=list(map(hover, lines)),
            hoverinfo="text",
        )
    return figure


def board(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """Parallel coordinates: an axis for each column of the table, a line for each row, the first one bold."""
    axes = picture["axes"]
    columns = [answer["columns"].index(name) for name in axes]
    scales = [scale([row[column] for row in answer["rows"]]) for column in columns]
    lines = [
        ", ".join(f"{name} {value_text(row[c])}" for name, c in zip(axes, columns, strict=True))
        for row in answer["rows"]
    ]
    figure = framed(
        colours,
        picture["title"],
        f"{picture['title']}: a line for each of the {len(lines)} rows of the table; the bold one is the "
        f"first: {lines[0]}.",
        330,
        width=40 + AXIS * len(axes),
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        xaxis={
            "tickmode": "array",
            "tickvals": list(range(len(axes))),
            "side": "top",
            "fixedrange": True,
            "ticktext": [f"<b>{plain(name)}</b>" for name in axes],
            "range": [-0.1, len(axes) - 0.3],
        },
        yaxis={"visible": False, "fixedrange": True, "range": [-0.06, 1.06]},
    )
    figure.update_layout(margin={"l": 20, "r": 20, "t": 84, "b": 20})
    for at, row in sorted(enumerate(answer["rows"]), reverse=True):  # the first one on top
        known = [(i, scales[i][0](row[c])) for i, c in enumerate(columns) if row[c] is not None]
        look = {"color": colours.surface["text" if at == 0 else "soft"], "width": 2.8 if at == 0 else 1.1}
        figure.add_scatter(
            x=[x for x, _ in known],
            y=[y for _, y in known],
            mode="lines+markers",
            line=look,
            marker={"size": 7, "opacity": 0},
            hovertext=hover(lines[at]),
            hoverinfo="text",
            meta={"row": at},
        )
    for at, (place, ticks) in enumerate(scales):
        for value in ticks:
            figure.add_annotation(
                x=at,
                y=place(value),
                text=plain(textwrap.shorten(value_text(value), 18, placeholder="…")),
                showarrow=False,
                xanchor="left",
                xshift=4,
                font={"size": 11, "color": colours.surface["soft"]},
                bgcolor=colours.surface["bg"],
            )
    return figure


def scale(values: list) -> tuple[Callable[[float | str], float], list]:
    """(position of a value on the axis of a column, from 0 to 1; the values that label the axis)."""
    known = sorted({value for value in values if value is not None})
    if known and isinstance(known[0], str):
        return lambda value: 1 - known.index(value) / max(1, len(known) - 1), known
    low, high = known[0], known[-1]
    return lambda value: 0.5 if low == high else (value - low) / (high - low), known if len(known) < 6 else [
        low,
        high,
    ]


def clouds(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """A panel for each question: its points, and for each problem the regression within it as a thin line."""
    parts, ink = picture["parts"], colours.surface["text"]
    titles = [
        f"{one['label'].replace('_', ' ')}: rank correlation {value_text(one['correlation'])}"
        for one in parts
    ]
    rows = (len(parts) + 1) // 2
    tiles = make_subplots(
        rows,
        2,
        subplot_titles=[
            f"{one['label'].replace('_', ' ')}: ρ {value_text(one['correlation'])}" for one in parts
        ],
        vertical_spacing=0.3 / rows,
        horizontal_spacing=0.12,
    )
    caption = (
        f"{picture['title']}: {picture['y']} against {picture['x']}. {'; '.join(titles)}. Dots are "
        "candidates (hollow ones lie beyond the left edge), lines are regressions within a problem."
    )
    figure = framed(
        colours, picture["title"], caption, 90 + 210 * rows, showlegend=False, hovermode="closest"
    )
    tiles.update_layout(figure.layout.to_plotly_json())
    tiles.update_annotations(font={"size": 12})
    for at, one in enumerate(parts):
        place = {"row": at // 2 + 1, "col": at % 2 + 1}
        points = [point for group in one["groups"] for point in group]
        left = sorted(x for x, _ in points)[int(FAR * len(points))]
        for x0, y0, x1, y1 in one["lines"]:
            tiles.add_scatter(
                x=[x0, x1],
                y=[y0, y1],
                mode="lines",
                hoverinfo="skip",
                line={"color": colours.surface["soft"], "width": 1},
                opacity=0.7,
                **place,
            )
        far = [x < left for x, _ in points]
        tiles.add_scatter(
            x=[max(x, left) for x, _ in points],
            y=[y for _, y in points],
            mode="markers",
            **place,
            marker={
                "size": 6,
                "opacity": 0.55,
                "color": ink,
                "symbol": ["circle-open" if out else "circle" for out in far],
            },
            hovertext=[f"{picture['x']} {value_text(x)}, {picture['y']} {value_text(y)}" for x, y in points],
            hoverinfo="text",
        )
        wide = max(x for x, _ in points) - left
        tiles.update_xaxes(range=[left - 0.04 * wide, left + 1.04 * wide], nticks=4, **place)
    tiles.update_xaxes(title={"text": plain(picture["x"]), "standoff": 2})
    return tiles


PICTURES = {
    "curves": lambda picture, answer, colours: curves(picture, colours),
    "heat": heat,
    "tokens": tokens,
    "spread": spread,
    "board": board,
    "clouds": clouds,
    "bars": bars,
    "trees": trees,
}
