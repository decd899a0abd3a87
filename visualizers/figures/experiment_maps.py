"""Heat maps of stored experiments, and token maps of a text.

Takes the plain data of a picture (explorer/experiments/pictures.py).
"""

import textwrap

import plotly.graph_objects as go

from visualizers.figures.charts import framed, greys, value_text
from visualizers.figures.theme import Theme
from visualizers.figures.traces import plain

CELL, TEXT_WIDE = 46, 130  # pixels of a token's column, and of the row names at the left
FEW = 8  # maximum number of cells in a row that are drawn with gaps


def heat(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """A strip of cells for each row and column; with few cells their values are written in them."""
    rows, columns = picture["rows"], picture["columns"]
    known = [
        (value, f"{row['label']}, {each}, {column}".replace(", ,", ","))
        for row in rows
        for column, values in zip(columns, row["values"], strict=True)
        for each, value in zip(row["each"], values, strict=True)
        if value is not None
    ]
    low, high = min(known), max(known)
    caption = (
        f"{picture['title']}: {picture['says']}. Lowest: {value_text(low[0])} ({low[1]}); highest: "
        f"{value_text(high[0])} ({high[1]})."
    )
    figure = framed(
        colours,
        picture["title"],
        caption,
        110 + 24 * len(rows),
        xaxis={
            "tickmode": "array",
            "tickvals": [at + 0.5 for at in range(len(columns))],
            "side": "top",
            "ticktext": [plain(name.replace("_", " ")) for name in columns],
            "range": [0, len(columns)],
            "showgrid": False,
            "fixedrange": True,
            "automargin": True,
        },
        yaxis={
            "tickmode": "array",
            "tickvals": list(range(len(rows))),
            "autorange": "reversed",
            "ticktext": [plain(row["label"]) for row in rows],
            "showgrid": False,
            "fixedrange": True,
            "automargin": True,
        },
        coloraxis=amounts(picture["low"], picture["high"], colours),
        dragmode=False,
    )
    figure.update_layout(margin={"t": 78, "b": 20, "l": 10})
    places = 0 if all(value % 1 == 0 for value, _ in known) else 2
    for at, row in enumerate(rows):
        figure.add_trace(strip(row, at, columns, places))
    return figure


def amounts(low: float, high: float, colours: Theme) -> dict:
    """A colour axis of greys from `low` to `high`."""
    bar = {"thickness": 10, "outlinewidth": 0, "tickvals": [low, high], "tickfont": {"size": 11}}
    scale = greys([colours.surface["bg"], *colours.amounts[1:4]])
    return {"cmin": low, "cmax": high, "colorscale": scale, "colorbar": bar}


def strip(row: dict, at: int, columns: list[str], places: int) -> go.Heatmap:
    """A row of a heat map, with one cell per entry of a column; `places`: decimals of the values."""
    each, gap = row["each"], 0.04
    edges, cells, words = [0.0], [], []
    for column, values in enumerate(row["values"]):
        wide = (1 - 2 * gap) / len(each)
        edges += [column + gap + wide * n for n in range(len(each) + 1)] + [column + 1.0]
        cells += [None, *values, None]
        hovers = [", ".join(filter(None, [row["label"], one, columns[column]])) for one in each]
        words += [
            "",
            *(f"{name}: {value_text(value)}" for name, value in zip(hovers, values, strict=True)),
            "",
        ]
    return go.Heatmap(
        x=edges,
        y=[at - 0.42, at + 0.42],
        z=[cells],
        coloraxis="coloraxis",
        hovertext=[words],
        hoverinfo="text",
        hoverongaps=False,
        ygap=1,
        xgap=1 if len(each) <= FEW else 0,
        texttemplate=f"%{{z:.{places}f}}" if len(each) == 1 else None,
        textfont={"size": 11},
    )


def tokens(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """A grey cell for each row and token of a text; words too long for their column are cut."""
    words, values = picture["tokens"], picture["values"]
    names = [next(name for name in picture["rows"][at::-1] if name or not at) for at in range(len(values))]
    low = 18 if len(values) < 17 else 8
    largest = max(
        (value, words[at], names[row]) for row, own in enumerate(values) for at, value in enumerate(own)
    )
    figure = framed(
        colours,
        picture["title"],
        f"{picture['title']}: {picture['says']}, for {len(words)} tokens in {len(values)} rows. "
        f"Most: {value_text(largest[0])} at {largest[1]}, {largest[2]}.",
        96 + low * len(values),
        width=TEXT_WIDE + CELL * len(words) + 60,
        xaxis={
            "tickmode": "array",
            "tickvals": list(range(len(words))),
            "side": "top",
            "tickangle": 0,
            "ticktext": [plain(textwrap.shorten(one, 7, placeholder="…") or one[:6]) for one in words],
            "showgrid": False,
            "fixedrange": True,
        },
        yaxis={
            "tickmode": "array",
            "tickvals": [at for at, name in enumerate(picture["rows"]) if name],
            "ticktext": [plain(name) for name in picture["rows"] if name],
            "autorange": "reversed",
            "showgrid": False,
            "fixedrange": True,
        },
        coloraxis=amounts(0, picture["high"], colours),
        dragmode=False,
    )
    figure.update_layout(margin={"t": 70, "b": 14, "l": TEXT_WIDE})
    figure.add_heatmap(
        z=values,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverinfo="text",
        hovertext=[
            [f"{plain(words[at])}, {plain(name)}: {value_text(value)}" for at, value in enumerate(own)]
            for name, own in zip(names, values, strict=True)
        ],
    )
    if picture["every"]:
        for at in range(picture["every"], len(words), picture["every"]):
            figure.add_vline(at - 0.5, line={"color": colours.surface["text"], "width": 2})
    return figure
