"""The chart of the losslessness test: how far the counts are from the target's distribution.

Takes the state of `decoders.speculative.losslessness.Proof`.
"""

import plotly.graph_objects as go

from visualizers.figures.charts import chart, counted, dotted, ends, lane_line, nothing, reader
from visualizers.figures.theme import theme

LATE = 20  # the first 1 / LATE of the seeds is not drawn: its sampling noise would fill the chart


def distance_to_target(state: dict, lane: int | str = "", look: str = "light") -> go.Figure:
    """Total variation distance to the target's distribution by the number of seeds, and exact samplers'.

    lane: what the lane is called. Before the first checkpoint the chart says so. Raises Refusal
    with one sentence for an unknown look.
    """
    title, ways = "Distance to the target's distribution", state["ways"]
    if not any(way["curve"] for way in ways):
        return nothing(title, f"{state['done']} of {counted(state['samples'], 'seed')} are counted.", look)
    colours = theme(look)
    band = [row for row in state["band"] if row[0] >= state["samples"] / LATE]
    first = band[0][0]
    edge = "99 of 100 exact samplers stay below (simulated)"
    groups = counted(state["cells"], "group")
    done = f"{state['done']:,} of {counted(state['samples'], 'seed')}, continuations in {groups}."
    labels = [way_text(way, lane if index == 0 else "") for index, way in enumerate(ways)]
    made = chart(
        title,
        f"total variation, measured; dotted: {edge}",
        " ".join([done, *filter(None, labels)]),
        look,
        {"words": "seeds", "range": [0, 1.02 * state["samples"]], "tickformat": ",d"},
        {"words": "total variation", "rangemode": "tozero"},
        1 + len(ways),
    )
    made.add_trace(dotted("exact samplers", [row[0] for row in band], [row[2] for row in band], colours))
    lines = []
    for index, way in enumerate(ways):
        late = [point for point in way["curve"] if point[0] >= first]
        number = lane if index == 0 else "broken"
        name = "" if index else way["name"]
        line = lane_line(number, name, index, [p[0] for p in late], [p[1] for p in late], colours)
        lines.append(line.update(name=line.name if index == 0 else way["name"]))
    ends(made, lines, colours)
    return reader(made, [row[0] for row in band], [row_text(row, ways) for row in band])


def row_text(row: list[float], ways: list[dict]) -> str:
    """The distances after this many seeds, in a sentence."""
    count, median, edge = row
    parts = []
    for way in ways:
        there = next((value for seeds, value in way["curve"] if seeds == count), None)
        parts.append(f"{way['name']} {digits(there)}")
    noise = f"exact samplers: median {digits(median)}, 99 of 100 below {digits(edge)}"
    return f"After {counted(count, 'seed')}: {' · '.join([*parts, noise])}."


def way_text(way: dict, lane: int | str = "") -> str:
    """The verdict on a way of decoding so far, in a sentence; "" before the first checkpoint."""
    if way["distance"] is None:
        return ""
    beyond = max(1, round(100 * way["beyond"])) if way["beyond"] > 0 else 0
    rare = (
        f"{beyond} of 100 exact samplers are this far off" if beyond else "no exact sampler was this far off"
    )
    verdict = "within sampling noise" if way["inside"] else "outside: this is not the target's distribution"
    name = f"{'✓' if way['inside'] else '✕'} {lane} {way['name']}".replace("  ", " ")
    return f"{name}: {verdict} (distance {digits(way['distance'])}, limit {digits(way['edge'])}; {rare})."


def digits(value: float | None) -> str:
    """A distance: `.034`, or a dash for None."""
    return "—" if value is None else f"{value:.3f}".removeprefix("0")
