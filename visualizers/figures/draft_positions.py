"""Charts of the microscope by position in the draft: depth, rank among siblings, number of accepted tokens.

Takes the report of `visualizers.analysis.speculation_report.microscope`. If nothing was drafted, a chart says
so. Every function raises Refusal with one sentence for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.cost_summary import share
from visualizers.figures.charts import (
    bar_look,
    chart,
    counted,
    dotted,
    greys,
    hover,
    lane_line,
    nothing,
    reader,
    whole,
)
from visualizers.figures.theme import theme

WRITTEN = 6  # maximum number of ranks for which the cells of the heat map have room for numbers


def acceptance_by_depth(report: dict, look: str = "light") -> go.Figure:
    """Acceptance at each depth of the draft: share of all rounds, share of tested tokens, and α^depth."""
    title = "Acceptance by depth"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    depths, colours, alpha = report["depths"], theme(look), report["expected"]["alpha"]
    places = [one["depth"] for one in depths]
    alpha_text = "" if alpha is None else f" α {share(alpha)} = levels accepted / levels tested, measured."
    made = chart(
        title,
        "bars: share of all rounds; line: of tested tokens; dotted: α^depth",
        f"Acceptance by depth, share of all rounds; {'; '.join(map(depth_short, depths))}.{alpha_text}",
        look,
        whole("draft depth", max(places)),
        {"range": [0, 1.04]},
        3,
    )
    made.add_bar(
        x=places,
        y=[one["of_rounds"] for one in depths],
        name="of all rounds",
        hoverinfo="skip",
        marker={"color": colours.amounts[2], "line": {"color": colours.ranks[0], "width": 1}},
    )
    if alpha is not None:
        made.add_trace(dotted("α^depth", places, [alpha**place for place in places], colours))
    tested = [one["of_tested"] for one in depths]
    made.add_trace(lane_line("", "of the tested", 0, places, tested, colours))
    everywhere = list(range(1, max(places) + 1))
    return reader(made, everywhere, [depth_text(report, place) for place in everywhere])


def depth_short(one: dict) -> str:
    """A depth with its share of all rounds."""
    return f"depth {one['depth']}: {share(one['of_rounds'])}"


def depth_text(report: dict, place: int) -> str:
    """The acceptance at one depth, in a sentence."""
    one = next((row for row in report["depths"] if row["depth"] == place), None)
    if one is None:
        return f"Depth {place}: nothing was drafted."
    alpha = report["expected"]["alpha"]
    tested = (
        f"{one['accepted']} of {one['tested']} tested ({share(one['of_tested'])})"
        if one["tested"]
        else "none tested"
    )
    theory = "" if alpha is None else f"; α^{place} = {share(alpha**place)}"
    return (
        f"Depth {place} (vLLM: position {place - 1}): accepted in {share(one['of_rounds'])} of all rounds; "
        f"{one['drafted']} drafted, {tested}{theory}."
    )


def counted_depths(report: dict, look: str = "light") -> go.Figure:
    """Share of the rounds in which each draft position was accepted, from a server's counts.

    report: see `speculation_report.counted`.
    """
    title = "Acceptance by depth"
    rows = report["depths"]
    if not rows:
        return nothing(title, "The server did not count by position in the draft.", look)
    lines = [
        f"Depth {one['depth']} (vLLM: position {one['depth'] - 1}): accepted in {one['accepted']:,} rounds, "
        f"{share(one['of_rounds'])} of all."
        for one in rows
    ]
    made = chart(
        title,
        "share of rounds whose k-th token was accepted; imported counts",
        f"Acceptance by depth, imported counts. {' '.join(lines)}",
        look,
        whole("draft depth", len(rows)),
        {"range": [0, 1.12]},
    )
    texts = [share(one["of_rounds"]) for one in rows] if len(rows) <= 2 * WRITTEN else None
    return _bars(made, {one["depth"]: one["of_rounds"] for one in rows}, texts, lines, look)


def draft_shape(report: dict, look: str = "light") -> go.Figure:
    """The number of tokens drafted at each depth: accepted, rejected and never reached."""
    title = "Shape of the drafts"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    depths, colours = report["depths"], theme(look)
    parts = {
        "accepted": ("accepted", [one["accepted"] for one in depths]),
        "rejected": ("rejected", [one["tested"] - one["accepted"] for one in depths]),
        "unreached": ("never reached", [one["drafted"] - one["tested"] for one in depths]),
    }
    lines = [
        f"Depth {one['depth']}: {counted(one['drafted'], 'token')} drafted in "
        f"{counted(one['rounds'], 'round')}; {one['accepted']} accepted, "
        f"{one['tested'] - one['accepted']} rejected, "
        f"{one['drafted'] - one['tested']} never reached."
        for one in depths
    ]
    places = [one["depth"] for one in depths]
    made = chart(
        title,
        "drafted tokens by depth and outcome, measured",
        " ".join(lines),
        look,
        whole("draft depth", max(places)),
        {"words": "tokens"},
        3,
    )
    for state, (name, counts) in parts.items():
        made.add_bar(
            x=places,
            y=[n or None for n in counts],
            name=name,
            marker=bar_look(state, colours),
            hoverinfo="skip",
            meta={"state": state},
        )
    return reader(made, places, lines)


def acceptance_by_rank(report: dict, look: str = "light") -> go.Figure:
    """Acceptance of the tested tokens by depth and by rank among siblings, as a heat map in grey."""
    title = "Acceptance by depth and rank"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    rows, colours = report["ranks"], theme(look)
    widest = max(len(row["cells"]) for row in rows)

    def cell_text(depth: int, rank: int, cell: dict | None) -> str:
        if cell is None:
            return f"Depth {depth}, rank {rank}: none tested."
        of = f"{cell['accepted']} of {cell['tested']} tested ({share(cell['share'])})"
        return f"Depth {depth}, rank {rank}: {of}."

    words = [
        [cell_text(row["depth"], rank, cell) for rank, cell in enumerate(row["cells"], 1)] for row in rows
    ]
    tested = [
        text
        for row, line in zip(rows, words, strict=True)
        for cell, text in zip(row["cells"], line, strict=True)
        if cell
    ]
    made = chart(
        title,
        "share of tested tokens that were accepted, measured; rank 1 is tried first",
        " ".join(tested) or "No drafted token was tested.",
        look,
        {**whole("rank among siblings", widest), "showgrid": False},
        {**whole("draft depth", len(rows)), "autorange": "reversed", "showgrid": False},
    )
    texts = [
        [
            "" if cell is None else f"{share(cell['share'])}<br>{cell['accepted']}/{cell['tested']}"
            for cell in row["cells"]
        ]
        for row in rows
    ]
    return made.add_heatmap(
        z=[[None if cell is None else cell["share"] for cell in row["cells"]] for row in rows],
        x=list(range(1, widest + 1)),
        y=[row["depth"] for row in rows],
        text=texts if widest <= WRITTEN else None,
        texttemplate="%{text}" if widest <= WRITTEN else "",
        textfont={"size": 11, "color": colours.surface["text"]},
        hovertext=[[hover(one) for one in line] for line in words],
        hoverinfo="text",
        zmin=0,
        zmax=1,
        colorscale=greys(colours.amounts),
        showscale=widest > WRITTEN,
        xgap=2,
        ygap=2,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".1f"},
    )


def accepted_lengths(report: dict, look: str = "light") -> go.Figure:
    """vLLM's acceptance_histogram: rounds by the number of drafted tokens that they accepted."""
    title = "Accepted tokens per round"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    counts = report["histogram"]
    lines = [
        f"{value} of {counted(sum(counts), 'round')} accepted {counted(place, 'token')}."
        for place, value in enumerate(counts)
    ]
    made = chart(
        title,
        "rounds by number of accepted tokens, measured",
        " ".join(lines),
        look,
        whole("accepted tokens", len(counts)),
        {"words": "rounds", "rangemode": "tozero"},
    )
    texts = [str(value) if value else "" for value in counts]
    return _bars(made, dict(enumerate(counts)), texts, lines, look)


def _bars(
    made: go.Figure, values: dict[int, float], texts: list[str] | None, lines: list[str], look: str
) -> go.Figure:
    """The chart with a bar at each x position, a text above it and a sentence on hover."""
    made.add_bar(
        x=list(values),
        y=list(values.values()),
        text=texts,
        textposition="outside",
        cliponaxis=False,
        marker={"color": theme(look).ranks[0]},
        hoverinfo="skip",
    )
    return reader(made, list(values), lines)
