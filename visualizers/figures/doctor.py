"""Charts of an examined draft: its overlap along each text, along a long one, and speed by length and stop
probability.

Takes what `visualizers.analysis.draft_diagnosis` and `draft_surface` give. Raises Refusal with one sentence
for an unknown look.
"""

from collections.abc import Sequence
from statistics import fmean

import plotly.graph_objects as go

from visualizers.analysis.draft_diagnosis import BIN, Along, mean_overlap
from visualizers.analysis.draft_surface import STOPS, Surface
from visualizers.figures.charts import across, chart, greys, hover, lane_line, nothing, reader, upwards, whole
from visualizers.figures.theme import theme


def by_text(texts: Sequence[Along], look: str = "light") -> go.Figure:
    """The mean overlap along each text, as bars."""
    title, colours = "Overlap along each text", theme(look)
    known = [(text, mean) for text in texts if (mean := mean_overlap(text)) is not None]
    if not known:
        return nothing(title, "The draft guesses nowhere.", look)
    hovers = [
        f"{text.name} ({text.asks}): overlap {mean:.2f} over {len(text.tokens)} tokens"
        for text, mean in known
    ]
    made = chart(
        title,
        "mean of Σ min(p, q): the probability that a token drawn from the draft is accepted",
        spanning([(mean, text.name) for text, mean in known]),
        look,
        {"words": "overlap", "range": [0, 1.14]},
        upwards(),
    )
    bars = across([text.name for text, _ in known], [mean for _, mean in known], hovers)
    made.add_bar(
        **bars,
        text=[f"{mean:.2f}" for _, mean in known],
        marker={"color": [colours.colour("accepted" if text.own else "unreached") for text, _ in known]},
    )
    return made.update_layout(height=max(made.layout.height, 150 + 30 * len(known)))


def along_long(texts: Sequence[Along], look: str = "light") -> go.Figure:
    """The mean overlap over the positions of the longest text."""
    title, colours = "Overlap over the position", theme(look)
    text = max(texts, key=lambda one: len(one.tokens), default=None)
    bins = [] if text is None else binned(text)
    if len(bins) < 2:
        return nothing(title, "No text is long enough.", look)
    at = [first + BIN // 2 for first, _ in bins]
    end = text.first + len(text.tokens)
    hovers = [f"Tokens {first} to {min(end, first + BIN - 1)}: overlap {mean:.2f}." for first, mean in bins]
    made = chart(
        title,
        f"mean overlap in bins of {BIN} tokens of “{text.name}”",
        spanning([(mean, f"token {first}") for first, mean in bins]),
        look,
        whole("token of the text", at[-1] + BIN),
        {"words": "overlap", "range": [0, 1.02]},
    )
    made.add_trace(lane_line("overlap", "", 0, at, [mean for _, mean in bins], colours))
    return reader(made, at, hovers)


def spanning(values: list[tuple[float, str]]) -> str:
    """The lowest and the highest of some overlaps, in words."""
    (low, lowest), (high, highest) = min(values), max(values)
    return f"Overlaps from {low:.2f} ({lowest}) to {high:.2f} ({highest})."


def binned(text: Along) -> list[tuple[int, float]]:
    """(position of its first token, mean overlap) of each bin of a text."""
    found = []
    for begin in range(0, len(text.overlap), BIN):
        values = [value for value in text.overlap[begin : begin + BIN] if value is not None]
        if values:
            found.append((text.first + begin + 1, fmean(values)))
    return found


def speeds(surface: Surface | None, look: str = "light") -> go.Figure:
    """Speed over plain decoding, by the length of the draft and its stop probability."""
    title, colours = "Which length, and when to stop", theme(look)
    if surface is None:
        return nothing(title, "No rounds were timed.", look)
    k, s = surface.best
    lengths = range(1, len(surface.speed) + 1)
    words = [
        [
            f"At most {length} drafted, stop below {stop:g}: {speed:.2f} × plain decoding, {tokens:.2f} "
            "tokens per round."
            for stop, speed, tokens in zip(STOPS, row, gained, strict=True)
        ]
        for length, row, gained in zip(lengths, surface.speed, surface.tokens, strict=True)
    ]
    everything = [value for row in surface.speed for value in row]
    made = chart(
        title,
        f"speed as a multiple of plain decoding, from {surface.rounds} rounds of {surface.cost.longest} "
        "drafted tokens; outlined: the best",
        f"Best: {words[k][s]} Now: {words[surface.own - 1][0]}",
        look,
        {"words": "stops after a drafted token below", "showgrid": False, "type": "category"},
        {**whole("drafted tokens at most", len(surface.speed)), "showgrid": False},
    )
    made.add_heatmap(
        z=surface.speed,
        x=[f"{stop:g}" for stop in STOPS],
        y=list(lengths),
        text=[[f"{value:.2f}" for value in row] for row in surface.speed],
        texttemplate="%{text}",
        textfont={"size": 11, "color": colours.surface["text"]},
        hovertext=[[hover(one) for one in row] for row in words],
        hoverinfo="text",
        zmin=min(everything),
        zmax=max(everything),
        colorscale=greys(colours.amounts),
        showscale=False,
        xgap=2,
        ygap=2,
    )
    made.add_shape(
        type="rect",
        x0=s - 0.5,
        x1=s + 0.5,
        y0=k + 0.5,
        y1=k + 1.5,
        line={"color": colours.colour("accepted"), "width": 3},
    )
    return made.update_layout(height=max(made.layout.height, 140 + 28 * len(surface.speed)))
