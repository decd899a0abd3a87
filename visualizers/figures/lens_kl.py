"""Figures of KL-tracing: a map of how far each changed token moves each prediction, and the strongest edges
over the text.
"""

import plotly.graph_objects as go

from decoders.lenses.frame import LensFrame
from decoders.trace.events import Depend
from visualizers.figures.charts import framed, greys, hover, value_text
from visualizers.figures.lens_grid import label
from visualizers.figures.theme import MONO, Theme, theme
from visualizers.figures.traces import plain

FIGURES = ("kl_map", "kl_edges")
CELL, LEFT, TOKEN = 26, 84, 58  # pixels of a cell, of the names of rows, of a token below edges
HIGH = 170  # pixels of the edges


def kl_map(frame: LensFrame, look: str = "light") -> go.Figure:
    """D: a row for each changed token, a column for each prediction, a ring around each row's peak."""
    colours, differences = theme(look), frame.data["differences"]
    names = [label(frame, at) for at in range(len(frame.tokens))]
    values = [[None if v != v else v for v in row] for row in differences.tolist()]
    if not frame.data["masked"]:
        values = [[None if j < i else v for j, v in enumerate(row)] for i, row in enumerate(values)]
    other = [v for i, row in enumerate(values) for j, v in enumerate(row) if v is not None and i != j]
    figure = framed(
        colours,
        "KL-tracing: how far each prediction moves",
        f"KL in nats between predictions before and after one token is changed; {len(names)} changed tokens "
        f"(rows), {len(names)} positions (columns). {frame.says}",
        120 + CELL * len(names),
        width=LEFT + CELL * len(names) + 70,
        dragmode=False,
        xaxis=axis(names) | {"side": "top", "tickangle": -60},
        yaxis=axis(names) | {"autorange": "reversed"},
        coloraxis={
            "cmin": 0,
            "cmax": max(other, default=1.0) or 1.0,  # the diagonal is larger but says little
            "colorscale": greys([colours.surface["bg"], *colours.amounts[1:]]),
            "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}},
        },
        showlegend=False,
    )
    figure.update_layout(margin={"t": 104, "b": 14, "l": LEFT, "r": 10})
    figure.add_heatmap(
        z=values,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hoverinfo="text",
        hovertext=[
            [
                hover(f"{names[i]} changed: {names[j]} moves by {value_text(v or 0.0)} nats")
                for j, v in enumerate(row)
            ]
            for i, row in enumerate(values)
        ],
    )
    at = [(peak, place) for place, peak in enumerate(frame.data["peaks"]) if peak is not None]
    ring = {"symbol": "circle-open", "size": 14, "color": colours.surface["text"], "line": {"width": 2}}
    figure.add_scatter(
        x=[x for x, _ in at], y=[y for _, y in at], mode="markers", marker=ring, hoverinfo="skip"
    )
    return figure


def axis(names: list[str]) -> dict:
    """An axis with a name for each position."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [plain(name) for name in names],
        "tickfont": {"size": 11, "family": MONO},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def chosen_edges(frame: LensFrame, edges: int, place: int) -> list[Depend]:
    """The strongest edges of all positions (place 0), or of one position counted from 1."""
    own = [one for one in frame.of(Depend) if not place or one.source == place - 1]
    return sorted(own, key=lambda one: -one.weight)[:edges]


def kl_edges(frame: LensFrame, look: str = "light", edges: int = 24, place: int = 0) -> go.Figure:
    """The strongest edges over the text, from a changed token to the position whose prediction moves."""
    colours, drawn = theme(look), chosen_edges(frame, edges, place)
    count, largest = len(frame.tokens), max((one.weight for one in drawn), default=1.0)
    whose = f"of position {place}" if place else "of all positions"
    figure = framed(
        colours,
        "KL-tracing: edges over the text",
        f"The {len(drawn)} strongest edges {whose}; wider and darker ones move a prediction further. "
        f"{frame.says}",
        HIGH + 84,
        width=LEFT + TOKEN * count,
        dragmode=False,
        xaxis=axis([label(frame, at) for at in range(count)])
        | {"range": [-0.6, count - 0.4], "tickangle": 0},
        yaxis={"visible": False, "fixedrange": True, "range": [0, 1.08]},
        showlegend=False,
    )
    figure.update_layout(margin={"t": 44, "b": 40, "l": 20, "r": 20})
    widest = max((abs(one.target - one.source) for one in drawn), default=1)
    for one in reversed(drawn):
        add_arc(figure, one, one.weight / largest, abs(one.target - one.source) / widest, frame, colours)
    return figure


def add_arc(
    figure: go.Figure, one: Depend, share: float, far: float, frame: LensFrame, colours: Theme
) -> None:
    """One edge as an arc with a dot at its target."""
    steps = [at / 16 for at in range(17)]
    x = [one.source + (one.target - one.source) * s for s in steps]
    y = [4 * s * (1 - s) * (0.15 + 0.85 * far) for s in steps]
    says = f"{label(frame, one.source)} changed: {label(frame, one.target)} moves by {one.weight:.3f} nats"
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line={"color": colours.surface["text"], "width": 0.6 + 2.6 * share},
        marker={"size": [0] * 16 + [7], "color": colours.surface["text"]},
        opacity=0.25 + 0.75 * share,
        hovertext=hover(says),
        hoverinfo="text",
    )
