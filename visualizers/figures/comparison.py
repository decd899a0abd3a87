"""Charts of a comparison of lanes: tokens and likelihood against cost, entropies, log-probabilities.

Takes the result of `visualizers.analysis.comparison.compare`. Lanes differ by dash and marker; a click on a
name in the legend hides that lane, a double click shows it alone.
"""

import bisect
import math
from collections.abc import Callable

import plotly.graph_objects as go

from decoders.refusal import Refusal
from visualizers.analysis.cost_summary import share
from visualizers.figures.charts import (
    chart,
    counted,
    ends,
    hover,
    lane_line,
    nothing,
    number,
    reader,
    significant,
    whole,
)
from visualizers.figures.joint_curves import alike, heading_of, label_of, numbers, rolling, rolling_window
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain

STRIP, ABOVE = 74, 20  # pixels of a lane's panel in a stack, and of the name above it
NO_TOKENS = "No lane has a token yet."
NOT_COUNTED = "A comparison counts cost in {}, not in {!r}."


def tokens_reached(comparison: dict, charge: str = "forwards", look: str = "light") -> go.Figure:
    """Tokens of each lane by what was paid for them. charge: a key of `found["charges"]`.

    Raises Refusal with one sentence for another charge or an unknown look; so do the next two.
    """
    words = charged(comparison, charge)

    def had(lane: dict, at: int, first: bool) -> str:
        reached = lane["race"]["reached"][at]
        return f"has {counted(reached, 'token')}" if first else str(reached)

    title = ("Tokens reached", f"by {words}, measured; steeper is cheaper")
    return _paid(comparison, charge, "reached", title, had, "tokens", look)


def total_log_probability(comparison: dict, charge: str = "forwards", look: str = "light") -> go.Figure:
    """The sum of the final tokens' log-probabilities by what was paid for them."""
    words = charged(comparison, charge)

    def had(lane: dict, at: int, first: bool) -> str:
        race = lane["race"]
        return f"{number(race['logprob'][at], 1)} with {counted(race['committed'][at], 'token')}"

    title = ("Σ log p", f"of final tokens by {words}, derived; every token lowers it")
    return _paid(comparison, charge, "logprob", title, had, "Σ log p, nats", look)


def mean_log_probability(comparison: dict, charge: str = "forwards", look: str = "light") -> go.Figure:
    """Mean log-probability against cost, both per token over equal lengths, so the comparison is fair."""
    words, likelihood = charged(comparison, charge), comparison["likelihood"]
    known = [one for one in likelihood["points"] if one["logprob"] is not None and one[charge] is not None]
    title = "Mean log p per token"
    if not known:
        return nothing(title, "No token is final in every lane yet.", look)
    colours, places = theme(look), [lane["lane"] for lane in comparison["lanes"]]
    labels = {lane["lane"]: lane["label"] for lane in comparison["lanes"]}
    lines = [
        f"lane {one['lane']}: {number(one['logprob'], 3)} for {paid(one[charge], words)} per token"
        for one in known
    ]
    made = chart(
        title,
        f"at {counted(likelihood['tokens'], 'token')}, derived; up and left: more likely and cheaper",
        f"Mean log-probability of a token against {words} per token, over the first "
        f"{counted(likelihood['tokens'], 'token')}: {'; '.join(lines)}.",
        look,
        {"words": words + " per token", "rangemode": "tozero"},
        {"words": "nats per token"},
        len(known),
    )
    points = [
        lane_line(
            one["lane"],
            labels[one["lane"]],
            places.index(one["lane"]),
            [one[charge]],
            [one["logprob"]],
            colours,
        )
        for one in known
    ]
    for point, sentence in zip(points, lines, strict=True):
        point.update(
            mode="markers",
            marker={"size": 13, "line": {"width": 2, "color": colours.surface["bg"]}},
            hovertext=[hover(sentence[0].upper() + sentence[1:] + ".")],
            hoverinfo="text",
        )
    ends(made, points, colours, gap="\u2003")
    level = [one["logprob"] for one in known]
    room = max(0.1, 0.2 * (max(level) - min(level)))
    made.layout.yaxis.range = [min(level) - room, max(level) + room]
    made.layout.xaxis.range = [0, 1.2 * max(one[charge] for one in known)]
    return made


def paid(value: float, words: str) -> str:
    """`1 target forward`, `0.4 target forwards`."""
    return f"{significant(value)} {words.removesuffix('s') if significant(value) == '1' else words}"


def charged(comparison: dict, charge: str) -> str:
    """The words of a charge. Refusal with one sentence if a comparison does not count it."""
    if charge not in comparison["charges"]:
        raise Refusal(NOT_COUNTED.format(", ".join(comparison["charges"]), charge))
    return comparison["charges"][charge]


def _paid(
    comparison: dict, charge: str, field: str, title: tuple[str, str], had: Callable, y: str, look: str
) -> go.Figure:
    """A step line per lane: a running total over its cost, with a sentence on all lanes at each cost."""
    lanes, words = comparison["lanes"], comparison["charges"][charge]
    joint = alike(lanes, lambda lane: (lane["race"][charge], lane["race"][field]))
    if not any(lane["race"]["reached"][-1] for lane in lanes):
        return nothing(title[0], NO_TOKENS, look)

    def at_cost(cost: float) -> str:
        parts = [_had(lane, charge, cost, had, lane is lanes[0]) for lane in lanes]
        written = number(cost, 3) if charge == "seconds" else f"{cost:,.0f}"
        return f"At {written} {words}: {', '.join(parts)}."

    open_ones = [lane for lane in lanes if not lane["ended"]]
    paid = [lane["race"][charge][-1] for lane in open_ones or lanes]
    costs = sorted({cost for lane in lanes for cost in lane["race"][charge]})
    whole_ones = {} if charge == "seconds" else {"tickformat": ",d"}
    made = chart(
        *title,
        f"{title[0].capitalize()} {title[1]}. {at_cost(min(paid) if open_ones else max(paid))}",
        look,
        {"words": words, "rangemode": "tozero", **whole_ones},
        {"words": y, "rangemode": "tozero"},
        len(joint),
    )
    lines = [
        lane_line(
            group[0]["lane"] if len(group) == 1 else numbers(group),
            label_of(group),
            lanes.index(group[0]),
            group[0]["race"][charge],
            group[0]["race"][field],
            theme(look),
            line={"shape": "hv"},
        )
        for group in joint
    ]
    ends(made, lines, theme(look))
    return reader(made, costs, [at_cost(cost) for cost in costs])


def _had(lane: dict, charge: str, cost: float, had: Callable, first: bool) -> str:
    """What a lane had reached at a cost: "lane 2 31 (ended)"."""
    paid = lane["race"][charge]
    at = max(0, bisect.bisect_right(paid, cost + 1e-9) - 1)
    beyond = paid[-1] < cost - 1e-9
    if beyond and not lane["ended"]:
        return f"lane {lane['lane']} — (not shown so far)"
    return f"lane {lane['lane']} {had(lane, at, first)}{' (ended)' if beyond else ''}"


# ---- token by token ----------------------------------------------------------------------------------


def entropies(comparison: dict, look: str = "light") -> go.Figure:
    """The target's entropy where each token was chosen, in bits, the lanes over each other.

    Raises Refusal with one sentence for an unknown look, as all that follow.
    """

    def bits(lane: dict, at: int) -> str:
        return f"{number(lane['entropy'][at], 2)} bits"

    rest = "of the target where each token was chosen, in bits, measured"
    return _overlay(comparison, "entropy", ("Entropy", rest), bits, look)


def log_probabilities(comparison: dict, look: str = "light") -> go.Figure:
    """Each token's natural log-probability under the target, unprocessed, the lanes over each other."""

    def logprob(lane: dict, at: int) -> str:
        value = lane["logprob"][at]
        return f"log p {number(value, 2)}" + (
            "" if value is None else f", p {probability_text(math.exp(value))}"
        )

    rest = "of each token under the target, unprocessed, measured"
    return _overlay(comparison, "logprob", ("Log p", rest), logprob, look)


def probability_text(p: float) -> str:
    """A probability in few characters: `.25`, `.0031`, `< .0001`."""
    if p < 0.0001:
        return "< .0001"
    return f"{p:.4f}".removeprefix("0") if p < 0.01 else share(p)


def _overlay(comparison: dict, field: str, title: tuple[str, str], say: Callable, look: str) -> go.Figure:
    """A value per token of each lane, with a sentence on all lanes at each position."""
    lanes, colours, parting = comparison["lanes"], theme(look), comparison["divergence"]
    longest = max((len(lane["tokens"]) for lane in lanes), default=0)
    if not longest:
        return nothing(title[0], NO_TOKENS, look)

    def at(position: int) -> str:
        parts = [
            f"lane {lane['lane']} {lane['tokens'][position - 1]} {say(lane, position - 1)}"
            if position <= len(lane["tokens"])
            else f"lane {lane['lane']} —"
            for lane in lanes
        ]
        return f"Position {position}: {' · '.join(parts)}"

    sentences = [f"{title[0].capitalize()} {title[1]}.", means(lanes, field)]
    if parting:
        sentences.append(f"The lanes first differ at token {parting['position']}.")
    window = rolling_window(longest)
    rest = [title[1], f"rolling mean of {window} tokens" if window > 1 else ""]
    made = chart(
        title[0],
        "; ".join(filter(None, [*rest, "dotted: first difference" if parting else ""])),
        " ".join(filter(None, [*sentences, f"Drawn: {rest[1]}, derived." if window > 1 else ""])),
        look,
        whole("token position", longest),
        {},
    )
    joint = alike(lanes, lambda lane: (lane["tokens"], lane[field]))
    curves = [rolling(group[0][field], window) for group in joint]
    axes = _strips(made, joint, curves, field, colours)
    for axis, group, curve in zip(axes, joint, curves, strict=True):
        made.add_scatter(
            x=list(range(1, len(curve) + 1)),
            y=curve,
            yaxis=axis,
            hoverinfo="skip",
            mode="lines",
            name=plain(f"{numbers(group)} {label_of(group)}"),
            meta={"lane": group[0]["lane"]},
            showlegend=False,
            line={"color": colours.surface["text"], "width": 1.4},
            fill="tozeroy",
            fillcolor=colours.amounts[1],
        )
    if parting:
        line = {"color": colours.surface["text"], "dash": "dot", "width": 1}
        x = parting["position"]
        for axis in axes:
            made.add_shape(x0=x, x1=x, y0=0, y1=1, xref="x", yref=f"{axis} domain", line=line)
    places = list(range(1, longest + 1))
    return reader(made, places, [at(position) for position in places], axes)


def _strips(
    made: go.Figure, groups: list[list[dict]], curves: list[list], field: str, colours: Theme
) -> list[str]:
    """Stacks one panel per curve, with its lanes' names and means above it; returns the panels' y axes."""
    values = [value for curve in curves for value in curve if value is not None]
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    total = STRIP * len(groups) + ABOVE * (len(groups) - 1)
    axes = [f"y{at + 1}" if at else "y" for at in range(len(groups))]
    top, soft = float(total), {"size": 11, "color": colours.surface["soft"]}
    layout, notes = {}, []
    for axis, group in zip(axes, groups, strict=True):
        layout[axis.replace("y", "yaxis")] = {
            "domain": [max(0.0, (top - STRIP) / total), top / total],
            "nticks": 4,
            "anchor": "x",
            "range": [low, high if high > low else 1],
            "automargin": True,
        }
        above = {
            "y": top / total,
            "xref": "paper",
            "yref": "paper",
            "yanchor": "bottom",
            "font": soft,
            "showarrow": False,
        }
        notes.append({"text": plain(heading_of(group)), "x": 0, "xanchor": "left", **above})
        if mean := mean_of(group[0][field]):
            notes.append({"text": f"mean {mean}", "x": 1, "xanchor": "right", **above})
        top -= STRIP + ABOVE
    margin = made.layout.margin
    made.update_layout(
        layout | {"xaxis": {"anchor": axes[-1]}, "margin": {"t": margin.t + ABOVE}},
        annotations=notes,
        height=total + margin.t + margin.b + ABOVE,
    )
    return axes


def mean_of(values: list[float | None]) -> str:
    """The mean of the values as text; "" if there are none or some are unknown."""
    return number(math.fsum(values) / len(values), 2) if values and None not in values else ""


def means(lanes: list[dict], field: str) -> str:
    """The means of the lanes whose values are all known, in a sentence; "" if there are none."""
    parts = [f"lane {lane['lane']} {mean}" for lane in lanes if (mean := mean_of(lane[field]))]
    return f"Mean, derived: {' · '.join(parts)}." if parts else ""


# ---- acceptance --------------------------------------------------------------------------------------
