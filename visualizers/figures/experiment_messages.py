"""The messages between the parts of one run, as a figure."""

import plotly.graph_objects as go

from visualizers.figures.charts import framed, hover
from visualizers.figures.theme import Theme
from visualizers.figures.traces import plain

LANE = 230  # pixels between the verticals of two parts
WORDS = 40  # characters of a message above an arrow between neighbouring parts


def messages(answer: dict, colours: Theme) -> go.Figure:
    """Who told whom what in one run: a vertical for each part, in the order in which they speak, and an
    arrow a message, downwards; what goes back to the left is dashed.
    """
    sent = answer["messages"]
    parts = list(dict.fromkeys(name for one in sent for name in (one["sender"], one["receiver"])))
    caption = f"One run of “{answer['title']}”, message by message: " + " ".join(
        f"{one['sender']} to {one['receiver']} after {one['seconds']:.2f} s." for one in sent
    )
    figure = framed(
        colours,
        "One run, message by message",
        caption,
        100 + 38 * len(sent),
        width=LANE * len(parts),
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        xaxis={
            "tickmode": "array",
            "tickvals": list(range(len(parts))),
            "ticktext": [f"<b>{plain(one)}</b>" for one in parts],
            "side": "top",
            "range": [-0.5, len(parts) - 0.5],
            "fixedrange": True,
            "gridcolor": colours.surface["line"],
        },
        yaxis={"visible": False, "range": [len(sent) - 0.3, -0.7], "fixedrange": True},
    )
    figure.update_layout(margin={"l": 10, "r": 10, "t": 78, "b": 10})
    return figure.add_traces([arrow(one, at, parts, colours) for at, one in enumerate(sent)])


def arrow(one: dict, at: int, parts: list[str], colours: Theme) -> go.Scatter:
    """One message as an arrow in row `at` from the top, with its text above it."""
    ends = [parts.index(one["sender"]), parts.index(one["receiver"])]
    far, back = abs(ends[1] - ends[0]), ends[1] < ends[0]
    words = (f"call {one['call']}: " if one["call"] else "") + one["says"]
    room = WORDS * far
    return go.Scatter(
        x=[ends[0], sum(ends) / 2, ends[1]],
        y=[at] * 3,
        mode="lines+markers+text",
        text=["", plain(words if len(words) <= room else f"{words[: room - 1]}…"), ""],
        textposition="top center",
        textfont={"size": 11, "color": colours.surface["soft"]},
        line={"color": colours.surface["text"], "width": 1.5, "dash": "dash" if back else "solid"},
        marker={
            "symbol": f"triangle-{'left' if back else 'right'}",
            "size": 9,
            "color": colours.surface["text"],
            "opacity": [0, 0, 1],
        },
        hoverinfo="text",
        hovertext=hover(f"{one['sender']} to {one['receiver']} after {one['seconds']:.2f} s: {words}"),
        meta={"sender": one["sender"], "receiver": one["receiver"], "call": one["call"]},
    )
