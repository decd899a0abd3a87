"""Points that move from step to step, with a slider below them. Takes plain arrays.

A slider's step changes which traces are visible, so that it works wherever a Plotly figure is shown.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from visualizers.figures.charts import framed
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain

HEIGHT, BELOW = 400, 96  # pixels of a figure, and of its slider with two lines of labels
SPARE, OUTLIERS = 0.14, 0.5  # margin as a share of the range; percent of points cut off at each end
SIZE = 5  # pixels of a point


def moving_points(
    title: str,
    frames: Sequence[np.ndarray],
    names: Sequence[str],
    look: str = "light",
    shades: Sequence[np.ndarray] | None = None,
    edges: Sequence[tuple[int, int]] = (),
    behind: np.ndarray | None = None,
) -> go.Figure:
    """Points [N, 2] at each step; the last step is shown first. `shades` [N] from 0 to 1 per step; `edges`
    join points; `behind` [M, 2]: pale points that do not move. Raises Refusal with one sentence for an
    unknown look.
    """
    colours = theme(look)
    caption = f"{title}. {len(frames[0])} points at {len(frames)} steps: {', '.join(names)}."
    figure = framed(colours, title, caption, HEIGHT, showlegend=False)
    fixed = [] if behind is None else [cloud(behind, colours.amounts[2], SIZE - 1)]
    each = [
        [*joined(frame, edges, colours), cloud(frame, shaded(shades, at, colours), SIZE)]
        for at, frame in enumerate(frames)
    ]
    figure.add_traces([*fixed, *(trace for traces in each for trace in traces)])
    shown = [
        [True] * len(fixed) + [at == step for at, traces in enumerate(each) for _ in traces]
        for step in range(len(frames))
    ]
    for trace, visible in zip(figure.data, shown[-1], strict=True):
        trace.visible = visible
    region = np.concatenate(frames) if behind is None else behind  # a few points may leave the plot
    x, y = (padded(np.percentile(region[:, axis], (OUTLIERS, 100 - OUTLIERS))) for axis in (0, 1))
    even = {} if edges else {"scaleanchor": "x"}  # points in a plane need equal scales, graphs do not
    bare = {"showticklabels": False, "showgrid": False}
    figure.update_layout(
        margin={"l": 16, "r": 16, "t": 48, "b": BELOW},
        xaxis={"range": x, **bare},
        yaxis={"range": y, **bare, **even},
        hovermode=False,
        sliders=[slider(names, shown, colours)],
    )
    return figure


def cloud(points: np.ndarray, colour, size: int) -> go.Scatter:
    """Points as markers of one colour, or of one colour each."""
    return go.Scatter(
        x=points[:, 0].round(4).tolist(),
        y=points[:, 1].round(4).tolist(),
        mode="markers",
        marker={"size": size, "color": colour},
        hoverinfo="skip",
    )


def joined(points: np.ndarray, edges: Sequence[tuple[int, int]], colours: Theme) -> list[go.Scatter]:
    """Lines between points, as one trace; none without edges."""
    if not edges:
        return []
    gap = np.full((len(edges), 1, 2), np.nan)
    path = np.concatenate([points[np.array(edges)], gap], 1).reshape(-1, 2)
    line = {"color": colours.surface["line"], "width": 1}
    return [go.Scatter(x=path[:, 0], y=path[:, 1], mode="lines", line=line, hoverinfo="skip")]


def shaded(shades: Sequence[np.ndarray] | None, step: int, colours: Theme) -> str | list[str]:
    """The colours of a step's points: the text colour, or greys by their shades, from pale to dark."""
    if shades is None:
        return colours.surface["text"]
    amounts = colours.amounts[1:]
    return [amounts[min(int(share * len(amounts)), len(amounts) - 1)] for share in shades[step]]


def padded(values: np.ndarray) -> list[float]:
    """The range of the values with a margin on both sides."""
    low, high = float(values.min()), float(values.max())
    room = SPARE * (high - low) or 1.0
    return [low - room, high + room]


def slider(names: Sequence[str], shown: list[list[bool]], colours: Theme) -> dict:
    """A slider over the steps, at the last one."""
    return {
        "active": len(names) - 1,
        "steps": [
            {"label": plain(name), "method": "restyle", "args": ["visible", visible]}
            for name, visible in zip(names, shown, strict=True)
        ],
        "currentvalue": {"prefix": "", "font": {"size": 13}},
        "font": {"size": 10, "color": colours.surface["soft"]},
        "bgcolor": colours.surface["grid"],
        "bordercolor": colours.surface["line"],
        "activebgcolor": colours.surface["text"],
        "pad": {"t": 12, "l": 24, "r": 24},
        "ticklen": 4,
        "minorticklen": 0,
    }
