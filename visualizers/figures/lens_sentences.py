"""The figure of DecoderLens: the sentence that the decoder writes from each layer of the encoder, with words
marked that are not in the final sentence.
"""

import plotly.graph_objects as go

from decoders.lenses.frame import LensFrame
from decoders.trace.events import Cell
from decoders.trace.scores import Measure, ScoreName
from visualizers.figures.charts import framed, number
from visualizers.figures.lens_grid import CELL, LEFT, names, word
from visualizers.figures.theme import MONO, Theme, theme

FIGURES = ("sentences",)
KINDS = (("kept", "in the final sentence, too", "accepted"), ("changed", "not in it", "rejected"))
KINDS = {  # state of a cell: (words, role of its colour, how its text is set)
    "kept": ("in the final sentence, too", "accepted", "{}"),
    "changed": ("not in it", "rejected", "<i>{}</i>"),
}
ROW = 26
SCORE = 70  # pixels of the column of log-probabilities


def sentences(frame: LensFrame, look: str = "light") -> go.Figure:
    """One sentence per row, the last layer's at the top."""
    colours, cells = theme(look), frame.of(Cell)
    longest = max((cell.position for cell in cells), default=1)
    scores = {e.level: e.total for e in frame.of(Measure, name=ScoreName.FINAL_SENTENCE)}
    ticks = [f"{level}  {number(scores[level], 1)}" for level in frame.levels]
    figure = framed(
        colours,
        f"{frame.title}: a sentence for each layer of the encoder",
        caption(frame, cells, scores),
        100 + ROW * len(frame.levels),
        width=LEFT + SCORE + CELL * longest + 40,
        dragmode=False,
        xaxis=names([str(at + 1) for at in range(longest)]),
        yaxis=names(ticks) | {"range": [-0.6, len(frame.levels) - 0.4]},
    )
    figure.update_layout(
        margin={"t": 60, "b": 30, "l": LEFT + SCORE, "r": 20},
        legend={"orientation": "h", "y": 1.0, "yref": "paper", "yanchor": "bottom", "x": 0},
    )
    figure.add_trace(cells_of(frame, cells, longest, colours))
    for title, role, _ in KINDS.values():
        marker = {"symbol": "square", "size": 11, "color": colours.state[role]["tint"]}
        marker["line"] = {"width": 1, "color": colours.state[role]["color"]}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=title)
    return figure


def cells_of(frame: LensFrame, cells: list[Cell], longest: int, colours: Theme) -> go.Heatmap:
    """A cell for each word in the tint of its state."""
    rows = {level: [None] * longest for level in frame.levels}
    texts, hovers = ({level: [""] * longest for level in frame.levels} for _ in range(2))
    for cell in cells:
        title, _, text = KINDS[cell.state]
        token_text, at = word(frame, cell.token), cell.position - 1
        rows[cell.level][at] = float(cell.state == "kept")
        texts[cell.level][at] = text.format(token_text)
        hovers[cell.level][at] = f"{cell.level}, token {cell.position}: {token_text}<br>{title}"
    tints = [colours.state[role]["tint"] for _, role, _ in KINDS.values()]
    return go.Heatmap(
        z=list(rows.values()),
        text=list(texts.values()),
        texttemplate="%{text}",
        textfont={"family": MONO, "size": 11, "color": colours.surface["text"]},
        hovertext=list(hovers.values()),
        hoverinfo="text",
        hoverongaps=False,
        zmin=0,
        zmax=1,
        colorscale=[[0, tints[1]], [0.5, tints[1]], [0.5, tints[0]], [1, tints[0]]],
        showscale=False,
        xgap=2,
        ygap=2,
    )


def caption(frame: LensFrame, cells: list[Cell], scores: dict[str, float]) -> str:
    """The figure's description in words."""
    first = frame.levels[0]
    kept = sum(cell.state == "kept" for cell in cells if cell.level == first)
    total = sum(cell.level == first for cell in cells)
    return (
        "The whole decoder writes from each layer of the encoder, from the bottom up; next to a layer is the "
        "log-probability in nats of the final sentence, given that layer. Words in italics are not in "
        f"the final sentence. From the embeddings alone, {kept} of {total} tokens are."
    )
