"""Charts of the microscope: where one speculative lane's drafts were accepted, and where they were wasted.

Takes the report of `visualizers.analysis.speculation_report.microscope`. If nothing was drafted, a chart says
so. Every function raises Refusal with one sentence for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.cost_summary import share
from visualizers.analysis.lane_stats import ACCEPTED, BEHIND, BESIDE, CUT, OPEN, REJECTED, UNSENT
from visualizers.analysis.speculation_report import FATES, RECENT
from visualizers.figures.charts import (
    across,
    bar_look,
    chart,
    counted,
    lane_line,
    nothing,
    number,
    reader,
    upwards,
    whole,
)
from visualizers.figures.theme import theme

NO_SHARES = "This lane was imported without the tokens that were rejected: shares by token would mislead."
OWN = {"resampled": ", then the target's own token", "bonus": " and one more of the target's own"}
STATES = {
    ACCEPTED: "accepted",
    REJECTED: "rejected",
    BEHIND: "unreached",
    BESIDE: "unreached",
    CUT: "tolerated",
    UNSENT: "pruned",
    OPEN: "unreached",
}


# ---- over time ---------------------------------------------------------------------------------------


def round_by_round(report: dict, look: str = "light") -> go.Figure:
    """Tokens that each round gained (up) and wasted (down), and the mean acceptance length of the last
    rounds.
    """
    title = "Round by round"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    rounds, colours = report["rounds"], theme(look)
    wasted = [made["drafted"] - made["accepted"] for made in rounds]
    up, down = max(2, *(made["accepted"] + 1 for made in rounds)), max(1, *wasted)
    floor = min(down, 2 * up)  # large trees waste many tokens; this keeps the gains readable
    mean = metric(report, "mean_acceptance_length")
    rest = (
        "up: tokens gained; down: tokens wasted, measured; line: mean acceptance length of the last "
        f"{RECENT} rounds, derived"
    )
    cut = f" Down to {floor} of up to {down} wasted tokens are shown." if down > floor else ""
    made = chart(
        title,
        rest,
        f"{report['sentence']} mean_acceptance_length {mean:.2f} = 1 + accepted / rounds.{cut}",
        look,
        whole("round", len(rounds)),
        {"words": "tokens", "range": [-floor - 0.3, up + 0.3]},
        5,
    )
    places = list(range(1, len(rounds) + 1))
    values = {
        "accepted": [one["accepted"] for one in rounds],
        "resampled": [int(one["own"] == "resampled") for one in rounds],
        "bonus": [int(one["own"] == "bonus") for one in rounds],
        "rejected": [-one["rejected"] for one in rounds],
        "unreached": [one["rejected"] - gone for one, gone in zip(rounds, wasted, strict=True)],
    }
    names = {
        "accepted": "accepted",
        "resampled": "target's own after a rejection",
        "bonus": "bonus",
        "rejected": "rejected",
        "unreached": "never reached",
    }
    for state, numbers in values.items():
        if any(numbers):
            glyph = colours.state[state]["glyph"] if state in OWN else ""
            made.add_bar(
                x=places,
                y=[n or None for n in numbers],
                name=names[state],
                marker=bar_look(state, colours),
                hoverinfo="skip",
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"color": colours.surface["on_fill"]},
                meta={"state": state},
                text=[glyph if n else "" for n in numbers],
            )
    line = lane_line("", f"mean of the last {RECENT}", 0, places, [one["recent"] for one in rounds], colours)
    made.add_trace(line.update(mode="lines"))
    made.add_hline(0, line={"color": colours.surface["text"], "width": 1.4})
    return reader(made, places, [round_text(place, rounds[place - 1]) for place in places])


def round_text(place: int, made: dict) -> str:
    """The outcome of one round, in a sentence."""
    wasted = made["drafted"] - made["accepted"]
    return (
        f"Round {place}: {made['accepted']} of {made['drafted']} accepted{OWN.get(made['own'], '')}; "
        f"{made['rejected']} rejected, {wasted - made['rejected']} never reached; mean acceptance length of "
        f"the last rounds {made['recent']:.2f}."
    )


def metric(report: dict, name: str) -> float:
    """One of vLLM's metrics by its name."""
    return next(one["value"] for one in report["metrics"] if one["name"] == name)


# ---- by kind, and where the drafts went --------------------------------------------------------------


def acceptance_by_class(report: dict, look: str = "light") -> go.Figure:
    """Acceptance of the tested tokens by kind of token."""
    title = "Acceptance by kind of token"
    if not report["metrics"] or not report["classes"]:
        return nothing(title, NO_SHARES if report["metrics"] else report["sentence"], look)
    rows = report["classes"]
    return _shares(title, [one["name"] for one in rows], rows, "Share of tested tokens accepted", look)


def acceptance_by_entropy(report: dict, look: str = "light") -> go.Figure:
    """Acceptance of the tested tokens by the target's entropy at their positions."""
    title = "Acceptance by the target's entropy"
    if not report["metrics"] or not report["entropies"]:
        unknown = "The target's entropy was not recorded where drafted tokens were tested."
        return nothing(title, unknown if report["metrics"] else report["sentence"], look)
    rows = report["entropies"]
    names = [
        f"{one['low']:g} " + ("bits or more" if one["high"] is None else f"to {one['high']:g} bits")
        for one in rows
    ]
    return _shares(title, names, rows, "Share of tested tokens accepted, by the target's entropy", look)


def _shares(title: str, names: list[str], rows: list[dict], words: str, look: str) -> go.Figure:
    """Acceptance of the tested tokens, one bar per name; on hover a bar quotes some rejected tokens."""
    lines = [
        f"{name}: {one['accepted']} of {one['tested']} tested ({share(one['share'])})"
        for name, one in zip(names, rows, strict=True)
    ]
    made = chart(
        title,
        "share of tested tokens that were accepted, measured",
        f"{words}: {'; '.join(lines)}.",
        look,
        {"range": [0, 1.35], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        upwards(),
    )
    shown = [
        f"{sentence}. Rejected: {'; '.join(one['examples'])}" if one["examples"] else sentence
        for sentence, one in zip(lines, rows, strict=True)
    ]
    return made.add_bar(
        **across(names, [one["share"] for one in rows], shown),
        text=[f"{one['accepted']} of {one['tested']}" for one in rows],
        marker={"color": theme(look).ranks[0]},
    )


def drafted_token_fates(report: dict, look: str = "light") -> go.Figure:
    """Shares of all that the drafter wrote by what became of it, sent to the target or not."""
    title = "What became of the drafter's tokens"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    rows, colours = report["fates"], theme(look)
    total = sum(one["count"] for one in rows)
    lines = [f"{one['says']}: {one['count']} of {total} ({share(one['share'])})" for one in rows]
    largest = max(one["share"] for one in rows)
    made = chart(
        title,
        "share of all that the drafter wrote, measured",
        f"Of {counted(total, 'token')} that the drafter wrote, {'; '.join(lines)}.",
        look,
        {"range": [0, 1.3 * largest]},
        upwards(),
    )
    for one, sentence in zip(rows, lines, strict=True):
        made.add_bar(
            **across([FATES[one["fate"]]], [one["share"]], [sentence]),
            text=[str(one["count"])],
            marker=bar_look(STATES[one["fate"]], colours),
            meta={"state": STATES[one["fate"]]},
        )
    return made


def drafting_time(report: dict, look: str = "light") -> go.Figure:
    """Total seconds of the draft's and of the target's forwards."""
    title = "Drafting time and target time"
    if not report["metrics"]:
        return nothing(title, report["sentence"], look)
    seconds, colours = report["drafting"], theme(look)
    took = seconds["draft"] + seconds["target"]
    if not took:
        return nothing(title, "No forward of this lane was timed.", look)
    names = {"draft": "drafting", "target": "the target"}
    lines = [
        f"{names[key]}: {number(seconds[key], 3)} s, {seconds[key] / took:.0%} of the models' time"
        for key in names
    ]
    made = chart(
        title,
        "seconds of their forwards, measured",
        f"Drafting took {seconds['draft'] / took:.0%} of the models' time, measured: {'; '.join(lines)}.",
        look,
        {"words": "seconds", "range": [0, 1.3 * max(seconds.values())]},
        upwards(),
    )
    return made.add_bar(
        **across(list(names.values()), [seconds[key] for key in names], lines),
        text=[f"{seconds[key] / took:.0%}" for key in names],
        marker={"color": colours.ranks[0]},
        width=0.5,
    )
