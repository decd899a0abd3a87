"""The grid of a lens by depth: rows are levels from the bottom up, columns are positions, and a cell shows
the level's most likely token.
"""

import math

import plotly.graph_objects as go

from decoders.lenses.frame import LensFrame
from visualizers.analysis.lens_grid import Grid, Square, grid_of
from visualizers.figures.cell_words import set_words
from visualizers.figures.charts import framed, greys
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain

FIGURES = ("grid",)
CELL, ROW, LEFT = 58, 24, 96  # pixels of a column, of a row, of the names of levels
ABOVE, BELOW, RIGHT = 44, 56, 24  # pixels around the cells
LETTERS = 7  # characters of a token in its cell
COLOURS = {  # the values by which cells can be coloured, in words
    "probability": "the probability of the cell's token",
    "KL to final": "the distance from the last level, KL(p || q) in nats",
    "Jensen-Shannon": "the distance from the last level, Jensen-Shannon in nats",
    "total variation": "the distance from the last level, total variation",
    "entropy": "the entropy of the level's distribution in nats",
    "chosen token": "the probability of the token that was chosen",
}


def grid(frame: LensFrame, look: str = "light", colour: str = "probability") -> go.Figure:
    """Each level's prediction at each position; a heavy border marks the decision depth."""
    colours, made = theme(look), grid_of(frame)
    columns, rows = made.positions, range(len(made.levels))
    words = {token: word(frame, token) for token in frame.words}
    values = [[value(made.squares[row, at], colour) for at in columns] for row in rows]
    largest = 1.0 if colour in ("probability", "total variation", "chosen token") else ceiling(values)
    title = f"{frame.title}: the most likely token after each layer"
    figure = framed(
        colours,
        title,
        caption(colour),
        ABOVE + ROW * len(made.levels) + BELOW,
        width=LEFT + CELL * len(columns) + RIGHT,
        dragmode=False,
        xaxis=names([f"{label(frame, at)}<br>{label(frame, at + 1)}" for at in columns]) | {"tickangle": 0},
        yaxis=names(made.levels),
        coloraxis={
            "cmin": 0,
            "cmax": largest,
            "colorscale": greys([colours.surface["bg"], *colours.amounts[1:4]]),
            "showscale": False,
        },
    )
    figure.update_layout(margin={"t": ABOVE, "b": BELOW, "l": LEFT, "r": RIGHT})
    likeliest = [[words[int(made.squares[row, at].top[0][0])] for at in columns] for row in rows]
    set_words(figure, likeliest, CELL, ROW, colours)
    figure.add_heatmap(
        z=values,
        text=likeliest,
        hovertext=[[hover(frame, made, words, row, at) for at in columns] for row in rows],
        hoverinfo="text",
        coloraxis="coloraxis",
    )
    figure.add_traces([between(len(columns), len(rows), colours), borders(made, colours)])
    return figure.update_layout(showlegend=False)


def value(square: Square, colour: str) -> float | None:
    """The number that colours a cell."""
    if colour == "probability":
        return math.exp(square.top[0][1])
    if colour == "chosen token":
        return None if square.chosen is None else math.exp(square.chosen)
    return {"KL to final": square.far, "entropy": square.entropy, **square.parts}.get(colour)


def ceiling(values: list[list[float | None]]) -> float:
    """The largest value, for the darkest cell."""
    return max((v for row in values for v in row if v is not None), default=1.0) or 1.0


def names(words: list[str]) -> dict:
    """An axis of names."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(words))),
        "ticktext": words,
        "range": [-0.5, len(words) - 0.5],
        "ticklabeloverflow": "allow",  # else Plotly measures each name again, a third of a grid's time
        "showgrid": False,
        "fixedrange": True,
        "zeroline": False,
    }


def word(frame: LensFrame, token: float) -> str:
    """A token shortened to fit its cell, with visible white space."""
    text = shown(frame.words.get(int(token), ""))
    return plain(text if len(text) <= LETTERS else text[: LETTERS - 1] + "…")


def shown(text: str) -> str:
    """A token's text with visible white space."""
    return text.replace("\n", "↵").replace("\t", "⇥").replace(" ", "␣")


def label(frame: LensFrame, position: int) -> str:
    """The token at a position as a column's name; "" after the end of the text."""
    return word(frame, frame.tokens[position]) if position < len(frame.tokens) else ""


def between(columns: int, rows: int, colours: Theme) -> go.Scatter:
    """Lines between the cells. With gaps of its own a heatmap is a picture of all its pixels, which takes
    longer than the rest of it.
    """
    x, y = [], []
    for at in range(1, columns):
        x += [at - 0.5, at - 0.5, None]
        y += [-0.5, rows - 0.5, None]
    for at in range(1, rows):
        x += [-0.5, columns - 0.5, None]
        y += [at - 0.5, at - 0.5, None]
    return drawn(x, y, colours.surface["bg"], 1)


def drawn(x: list[float | None], y: list[float | None], colour: str, width: int) -> go.Scatter:
    """Lines along cells, in one trace."""
    line = {"color": colour, "width": width, "simplify": False}
    return go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip")


def borders(made: Grid, colours: Theme) -> go.Scatter:
    """A heavy border around the cell of each position's decision depth: one line, which is drawn sooner than
    as many shapes.
    """
    x, y = [], []
    for place, row in made.depth.items():
        at = made.positions.index(place)
        x += [at - 0.5, at + 0.5, at + 0.5, at - 0.5, at - 0.5, None]
        y += [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, None]
    return drawn(x, y, colours.surface["text"], 2)


def hover(frame: LensFrame, made: Grid, words: dict[int, str], row: int, at: int) -> str:
    """The hover text of a cell. words: token -> its text."""
    square = made.squares[row, at]
    read = words[frame.tokens[at]]
    lines = [f"<b>{made.levels[row]}</b>, after {read} (position {at})"]
    lines += [f"{words[int(token)]} {math.exp(p):.3f}" for token, p in square.top[:5]]
    if square.chosen is not None:
        lines.append(
            f"chosen: {words[frame.tokens[at + 1]]} {math.exp(square.chosen):.3f}, rank {square.rank}"
        )
    if square.far is not None:
        parts = "".join(f", {name} {x:.3f}" for name, x in square.parts.items())
        lines.append(f"distance from the last level: KL {square.far:.3f}{parts}")
    lines.append(f"entropy {square.entropy:.2f} nats")
    if made.depth.get(at) == row:
        lines.append("from here on the most likely token is the final one")
    return "<br>".join(lines)


def caption(colour: str) -> str:
    """What the grid shows, in words."""
    return (
        "Rows are layers, from the bottom up; below each column are the token that was read and the one "
        f"that follows it. The stronger a shade, the larger {COLOURS[colour]}. A heavy border marks the "
        "layer from which on the most likely token is that of the last layer."
    )
