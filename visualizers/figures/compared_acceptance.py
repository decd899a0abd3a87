"""Charts of a comparison of lanes that draft: acceptance by depth and by kind of token.

Takes the result of `visualizers.analysis.comparison.compare`.
"""

import plotly.graph_objects as go

from visualizers.analysis.cost_summary import share
from visualizers.figures.charts import (
    chart,
    counted,
    dotted,
    ends,
    hover,
    lane_line,
    nothing,
    reader,
    whole,
)
from visualizers.figures.theme import theme


def drafting(comparison: dict) -> list[tuple[int, dict]]:
    """The lanes that drafted, each with its index among all lanes."""
    return [(index, lane) for index, lane in enumerate(comparison["lanes"]) if lane["alpha"] is not None]


def acceptance_by_depth(comparison: dict, look: str = "light") -> go.Figure:
    """Share of each lane's rounds whose k-th drafted token was accepted, with α^k for comparison."""
    lanes, colours, title = drafting(comparison), theme(look), "Acceptance by depth"
    if not lanes:
        return nothing(title, "No lane has drafted anything.", look)
    deepest = max(row["depth"] for _, lane in lanes for row in lane["depth"])

    def at(lane: dict, depth: int) -> str:
        row = next((one for one in lane["depth"] if one["depth"] == depth), None)
        if row is None:
            return f"lane {lane['lane']} —"
        theory = f"α^{depth} {share(row['theory'])}"
        return f"lane {lane['lane']} {row['reached']} of {counted(row['rounds'], 'round')}, {theory}"

    alphas = " · ".join(f"lane {lane['lane']}: α {share(lane['alpha'])}" for _, lane in lanes)
    rest = "share of rounds whose k-th token was accepted, measured; dotted: α^k, derived"
    made = chart(
        title,
        rest,
        f"Acceptance by depth: {rest}. {alphas}.",
        look,
        whole("draft depth", deepest),
        {"range": [0, 1.04]},
        len(lanes),
    )
    lines = []
    for index, lane in lanes:
        depths, shares, theory = ([row[key] for row in lane["depth"]] for key in ("depth", "share", "theory"))
        made.add_trace(dotted("", depths, theory, colours, legendgroup=str(lane["lane"])))
        lines.append(lane_line(lane["lane"], lane["label"], index, depths, shares, colours))
    ends(made, lines, colours, gap="\u2002")
    places = list(range(1, deepest + 1))
    return reader(
        made, places, [f"Depth {n}: {' · '.join(at(lane, n) for _, lane in lanes)}" for n in places]
    )


def acceptance_by_class(comparison: dict, look: str = "light") -> go.Figure:
    """Acceptance of the tested tokens by kind of token, one marker per lane."""
    lanes, colours, title = drafting(comparison), theme(look), "Accepted by kind of token"
    names = list(dict.fromkeys(row["name"] for _, lane in lanes for row in lane["classes"]))
    if not names:
        return nothing(title, "No lane has drafted anything.", look)
    hovers = {
        (lane["lane"], row["name"]): f"lane {lane['lane']}, {row['name']}: {row['accepted']} of "
        f"{row['tested']} tested ({share(row['share'])})"
        for _, lane in lanes
        for row in lane["classes"]
    }
    made = chart(
        title,
        "of those tested, measured",
        f"Share accepted of the tested: {'; '.join(hovers.values())}.",
        look,
        {"range": [-0.03, 1.06], "tickformat": ".1f"},
        {"autorange": "reversed", "categoryorder": "array", "categoryarray": names},
        len(lanes),
    )
    for index, lane in lanes:
        rows = lane["classes"]
        line = lane_line(
            lane["lane"],
            lane["label"],
            index,
            [row["share"] for row in rows],
            [row["name"] for row in rows],
            colours,
        )
        texts = [hovers[lane["lane"], row["name"]] for row in rows]
        made.add_trace(
            line.update(
                mode="markers",
                hovertext=[hover(text[0].upper() + text[1:] + ".") for text in texts],
                hoverinfo="text",
                marker={"size": 11, "line": {"width": 1, "color": colours.surface["bg"]}},
            )
        )
    return made
