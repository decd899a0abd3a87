"""Charts of the tokens per round that were expected, and of whether the draft's confidence is calibrated.

Takes the report of `visualizers.analysis.speculation_report.microscope`. If nothing was drafted, a chart says
so. Every function raises Refusal with one sentence for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.cost_summary import share
from visualizers.figures.charts import across, chart, dotted, hover, lane_line, nothing, upwards
from visualizers.figures.theme import theme


def tokens_per_round(report: dict, look: str = "light") -> go.Figure:
    """Mean tokens per round: measured, expected from α, and predicted by the draft's probabilities."""
    title = "Tokens per round"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    own = report["expected"]
    known = {
        "realised": own["realised"],
        "expected from α": own["expected"],
        "predicted by the draft's probabilities": own["by_draft"],
    }
    known = {name: value for name, value in known.items() if value is not None}
    formula = "(1 − α^(depth + 1)) / (1 − α), mean over the rounds"
    says = own["says"] if own["alpha"] is None else f"Expected by {formula}: {own['says']}."
    lines = [f"{name}: {value:.2f} tokens per round" for name, value in known.items()]
    made = chart(
        title,
        "realised: measured; the others: derived",
        f"{'; '.join(lines).capitalize()}. {says}",
        look,
        {"words": "tokens per round", "range": [0, 1.2 * max(known.values())]},
        upwards(),
    )
    return made.add_bar(
        **across(list(known), list(known.values()), lines),
        text=[f"{one:.2f}" for one in known.values()],
        marker={"color": [theme(look).ranks[0], *[theme(look).ranks[2]] * 2][: len(known)]},
        width=0.5,
    )


def reliability(report: dict, look: str = "light") -> go.Figure:
    """Reliability diagram: share accepted against predicted probability, with 95% intervals."""
    title = "Is the draft calibrated?"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    diagrams, colours = report["reliability"], theme(look)
    if not diagrams:
        return nothing(title, "No probability of acceptance was predicted for the drafted tokens.", look)
    far = "; ".join(f"{one['name']} is off by {share(one['error'])}" for one in diagrams)
    bins = [[f"{bin_text(one['name'], each)}" for each in one["bins"]] for one in diagrams]
    made = chart(
        title,
        "share of tested tokens that were accepted, with 95% intervals; dotted: perfect calibration",
        f"Weighted by tokens tested, {far}. {' '.join(text for own in bins for text in own)}",
        look,
        {"words": "predicted", "range": [0, 1]},
        {"words": "accepted", "range": [-0.02, 1.04]},
        1 + len(diagrams),
    )
    made.add_trace(dotted("perfectly calibrated", [0, 1], [0, 1], colours))
    for index, (one, hovers) in enumerate(zip(diagrams, bins, strict=True)):
        line = lane_line(
            "",
            f"{one['short']}: {one['name']}",
            index,
            [each["mean"] for each in one["bins"]],
            [each["share"] for each in one["bins"]],
            colours,
        )
        made.add_trace(
            line.update(
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "color": colours.surface["soft"],
                    "thickness": 1,
                    "width": 3,
                    "array": [each["share_high"] - each["share"] for each in one["bins"]],
                    "arrayminus": [each["share"] - each["share_low"] for each in one["bins"]],
                },
                hovertext=[hover(text) for text in hovers],
                hoverinfo="text",
                meta={"short": one["short"]},
            )
        )
    return made


def bin_text(name: str, one: dict) -> str:
    """One bin in a sentence."""
    low, high = (f"{one[end]:.1f}".removeprefix("0") for end in ("low", "high"))
    interval = f"95% interval {share(one['share_low'])} to {share(one['share_high'])}"
    return (
        f"Where {name} was {low.replace('.0', '0')} to {high}, {share(one['mean'])} on average, "
        f"{one['accepted']} of {one['tested']} tested were accepted: {share(one['share'])} ({interval})."
    )
