"""The picture of one text on two engines: both log-probabilities, their difference, and how far the whole
distributions are apart.

Takes what `visualizers.analysis.twin.twin` gives. Raises Refusal with one sentence for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.twin import VERDICTS, Place, Twin, could_flip, largest_first
from visualizers.figures.charts import chart, dotted, lane_line, number, reader, whole
from visualizers.figures.theme import theme

STATES = {  # verdict -> the state whose colour its bars have
    "rounding": "unreached",
    "tie": "tolerated",
    "temperature": "resampled",
    "renormalised": "bonus",
    "other": "rejected",
    "unknown": "pruned",
}
PANELS = 170  # pixels of a panel
SIDES = ("A", "B")


def scored_twice(found: Twin, look: str = "light") -> go.Figure:
    """Both curves above, the differences as bars in the colours of their verdicts, and the divergence."""
    colours, places = theme(look), found.places
    at = [one.position for one in places]
    panels = ["log-probability", "B − A"]
    if any(one.kl is not None for one in places):
        panels.append("KL(A‖B)")
    ends = [0.4, len(places) + 0.6]
    sentences = [sentence(one) for one in places]
    made = chart(
        "One text, two engines",
        f"A: {found.names[0]}. B: {found.names[1]}. Log-probabilities of the text's tokens in nats",
        caption_of(found),
        look,
        whole("token of the text", len(places)) | {"anchor": f"y{len(panels)}", "range": ends},
        {"words": panels[0], "domain": domain(0, len(panels))},
        names=2 + len(found.counts),
        **{
            f"yaxis{number_ + 1}": {
                "title": {"text": words, "standoff": 8},
                "domain": domain(number_, len(panels)),
                "automargin": True,
                "anchor": "x",
                "exponentformat": "power",
                "rangemode": "tozero" if number_ == 2 else "normal",
            }
            for number_, words in enumerate(panels)
            if number_
        },
    )
    for index, side in enumerate(SIDES):
        values = [(one.a, one.b)[index].logprob for one in places]
        made.add_trace(lane_line(side, "", index, at, values, colours))
    for verdict in found.counts:
        here = [one for one in places if one.verdict == verdict and one.difference is not None]
        if here:
            made.add_bar(
                x=[one.position for one in here],
                y=[one.difference for one in here],
                yaxis="y2",
                name=VERDICTS[verdict].name,
                marker={"color": colours.colour(STATES[verdict])},
                hoverinfo="skip",
            )
    bound = found.rounding.place
    if any(abs(one.difference or 0.0) > bound / 4 for one in places):
        for level in (bound, -bound):
            made.add_trace(dotted("", ends, [level, level], colours, yaxis="y2"))
    if len(panels) == 3:
        made.add_bar(
            x=at,
            y=[one.kl for one in places],
            yaxis="y3",
            marker={"color": colours.surface["text"]},
            hoverinfo="skip",
            showlegend=False,
        )
    mark_places(made, found, colours)
    made.update_layout(height=made.layout.height - 320 + 110 + PANELS * len(panels))
    return reader(made, at, sentences, [f"y{n + 1 if n else ''}" for n in range(len(panels))])


def caption_of(found: Twin) -> str:
    """The picture in words: how many tokens have each verdict, and the largest difference."""
    counts = ", ".join(f"{count} {VERDICTS[name].name}" for name, count in found.counts.items())
    largest = largest_first(found.places)
    rest = f" Largest difference: {sentence(largest[0])}" if largest else ""
    return f"{len(found.places)} tokens: {counts}.{rest}"


def domain(panel: int, panels: int) -> list[float]:
    """The share of the height that a panel has, counted from the top."""
    size, gap = 1 / panels, 0.035
    top, bottom = 1 - panel * size, 1 - (panel + 1) * size
    return [bottom + gap * (panel < panels - 1), top - gap * (panel > 0)]


def mark_places(made: go.Figure, found: Twin, colours) -> None:
    """Triangles above the places where the most likely token differs, hollow where it could."""
    known = [one.logprob for place in found.places for one in (place.a, place.b) if one.logprob is not None]
    above = -0.1 * min(known, default=0.0)
    for name, symbol, places in (
        ("other most likely token", "triangle-down", [one for one in found.places if one.flips]),
        ("could flip", "triangle-down-open", could_flip(found)),
    ):
        if places:
            made.add_scatter(
                x=[one.position for one in places],
                y=[above] * len(places),
                mode="markers",
                name=name,
                marker={"symbol": symbol, "size": 9, "color": colours.colour("tolerated")},
                hoverinfo="skip",
            )


def sentence(place: Place) -> str:
    """What a place shows, in words."""
    parts = [f"Token {place.position} “{place.text}”"]
    for side, one in zip(SIDES, (place.a, place.b), strict=True):
        rank = f", rank {one.rank}" if one.rank else ""
        parts.append(f"{side} {number(one.logprob, 4)}{rank}")
    if place.difference is not None:
        parts.append(f"difference {number(place.difference, 5)}")
    if place.kl is not None:
        parts.append(f"KL {place.kl:.2g}")
    name, when = VERDICTS[place.verdict]
    return ", ".join(parts) + f"; {name}: {when}."
