"""What the figures of stored experiments share: a frame with title and caption, and how values are written.

Knows the palette and numbers, no kind of figure.
"""

import plotly.graph_objects as go

from visualizers.figures.charts import MINUS, heading
from visualizers.figures.theme import SANS, Theme, template


def said(value: float | str | None) -> str:
    """A value as people read it: three places, a true minus sign, a dash where there is nothing."""
    if value is None:
        return "—"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        value = f"{value:g}" if value.is_integer() else f"{value:.3f}"
    return str(value).replace("-", MINUS)


def framed(colours: Theme, title: str, caption: str, height: int, **layout: object) -> go.Figure:
    """An empty figure with a title and a caption."""
    figure = go.Figure(layout={"template": template(colours.name), "meta": {"caption": caption}})
    return figure.update_layout(
        title=heading(title),
        height=height,
        margin={"l": 54, "r": 24, "t": 48, "b": 44},
        hoverlabel={"font": {"family": SANS}},
        legend={
            "orientation": "v",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "x": 0,
            "title": {"text": ""},
        },
        **layout,
    )
