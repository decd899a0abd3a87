"""The chart of how far lanes' texts agree: for each pair, up to the first difference.

Takes the result of `visualizers.analysis.comparison.compare`.
"""

import plotly.graph_objects as go

from visualizers.figures.charts import chart, counted, greys, hover, nothing, number
from visualizers.figures.comparison import probability_text
from visualizers.figures.theme import theme


def shared_beginnings(comparison: dict, look: str = "light") -> go.Figure:
    """For each pair of lanes, the number of tokens that their texts share before they differ."""
    pairs, lanes, title = (
        comparison["pairs"],
        [lane["lane"] for lane in comparison["lanes"]],
        "Shared prefixes",
    )
    if not pairs:
        return nothing(title, comparison["sentence"], look)
    same = {frozenset(one["lanes"]): one for one in pairs}
    grid = [[same.get(frozenset((a, b))) for b in lanes] for a in lanes]
    names = [f"lane {lane}" for lane in lanes]
    made = chart(
        title,
        "tokens that two lanes' texts share before they differ, measured",
        " ".join([comparison["sentence"], *(parted(one) for one in pairs)]),
        look,
        {"showgrid": False},
        {"autorange": "reversed", "showgrid": False},
    )
    parts = {True: "", False: " ≠"}
    made.add_trace(
        go.Heatmap(
            z=[[None if one is None else one["same"] for one in row] for row in grid],
            x=names,
            y=names,
            text=[
                ["" if one is None else f"{one['same']}{parts[one['position'] is None]}" for one in row]
                for row in grid
            ],
            hovertext=[["" if one is None else hover(parted(one)) for one in row] for row in grid],
            texttemplate="%{text}",
            textfont={"color": theme(look).surface["text"]},
            hoverinfo="text",
            xgap=2,
            ygap=2,
            zmin=0,
            showscale=False,
            colorscale=greys(theme(look).amounts),
            hoverongaps=False,
        )
    )
    return made


def parted(pair: dict) -> str:
    """The first difference of two lanes, in a sentence."""
    a, b = pair["lanes"]
    if pair["position"] is None:
        return f"Lanes {a} and {b} have {counted(pair['same'], 'token')} in common and do not differ so far."
    tokens = " and ".join(
        f"“{token}”" + ("" if p is None else f" (p {probability_text(p)})")
        for token, p in zip(pair["tokens"], pair["p"], strict=True)
    )
    margin = "" if pair["margin"] is None else f", {number(pair['margin'], 2)} nats apart"
    return f"Lanes {a} and {b} diverge at token {pair['position']}: {tokens}{margin}; {pair['why']}."
