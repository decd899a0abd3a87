"""Charts of the microscope: where the drafts of one speculative lane were accepted, and where wasted.

Takes what `visualizers.analysis.speculation_report.microscope` gives; knows nothing of traces. Every function
draws a chart that says so where nothing was drafted, and raises ValueError with one sentence for an unknown
look.
"""

import plotly.graph_objects as go

from visualizers.analysis.cost_summary import share
from visualizers.analysis.lane_stats import ACCEPTED, BEHIND, BESIDE, OPEN, PRUNED, REJECTED
from visualizers.analysis.speculation_report import FATES, RECENT
from visualizers.figures.charts import (
    across,
    bar_look,
    chart,
    counted,
    dotted,
    greys,
    hover,
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
    PRUNED: "pruned",
    OPEN: "unreached",
}
WRITTEN = 6  # ranks up to which the cells of a heat map have room for numbers


# ---- over time ---------------------------------------------------------------------------------------


def round_by_round(found: dict, look: str = "light") -> go.Figure:
    """Up: tokens gained by each round, down: drafted in vain; the line is the mean of the latest rounds."""
    title = "round by round"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    rounds, colours = found["rounds"], theme(look)
    lost = [made["drafted"] - made["accepted"] for made in rounds]
    up, down = max(2, *(made["accepted"] + 1 for made in rounds)), max(1, *lost)
    floor = min(down, 2 * up)  # large trees waste much: what is gained stays readable
    mean = metric(found, "mean_acceptance_length")
    rest = (
        "up: tokens gained, down: drafted in vain, measured; line: mean acceptance length of the last "
        f"{RECENT} rounds, derived"
    )
    cut = f" Down to {floor} of up to {down} are in the picture." if down > floor else ""
    made = chart(
        title,
        rest,
        f"{found['sentence']} mean_acceptance_length {mean:.2f} = 1 + accepted / rounds.{cut}",
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
        "unreached": [one["rejected"] - gone for one, gone in zip(rounds, lost, strict=True)],
    }
    names = {
        "accepted": "accepted",
        "resampled": "own, after a rejection",
        "bonus": "own, after none",
        "rejected": "rejected",
        "unreached": "never looked at",
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
    return reader(made, places, [round_said(place, rounds[place - 1]) for place in places])


def round_said(place: int, made: dict) -> str:
    """What came of one round, in a sentence."""
    lost = made["drafted"] - made["accepted"]
    return (
        f"Round {place}: {made['accepted']} of {made['drafted']} accepted{OWN.get(made['own'], '')}; "
        f"{made['rejected']} rejected, {lost - made['rejected']} never reached; mean acceptance length of "
        f"the last rounds {made['recent']:.2f}."
    )


def metric(found: dict, name: str) -> float:
    """One of vLLM's metrics by its name."""
    return next(one["value"] for one in found["metrics"] if one["name"] == name)


# ---- by place in the draft ---------------------------------------------------------------------------


def acceptance_by_depth(found: dict, look: str = "light") -> go.Figure:
    """Share accepted at each depth of the draft: of all rounds, of the tested, and α to the depth."""
    title = "acceptance by depth"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    depths, colours, alpha = found["depths"], theme(look), found["expected"]["alpha"]
    places = [one["depth"] for one in depths]
    said = "" if alpha is None else f" α {share(alpha)} = levels accepted / levels tested, measured."
    made = chart(
        title,
        "bars: of all rounds; line: of the tested; dotted: α^depth",
        f"Acceptance by depth, share of all rounds; {'; '.join(depth_short(one) for one in depths)}.{said}",
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
    return reader(made, everywhere, [depth_said(found, place) for place in everywhere])


def depth_short(one: dict) -> str:
    """A depth and its share of all rounds."""
    return f"depth {one['depth']}: {share(one['of_rounds'])}"


def depth_said(found: dict, place: int) -> str:
    """What is known of a depth, in a sentence."""
    one = next((row for row in found["depths"] if row["depth"] == place), None)
    if one is None:
        return f"Depth {place}: nothing was drafted."
    alpha = found["expected"]["alpha"]
    tested = (
        f"{one['accepted']} of {one['tested']} tested ({share(one['of_tested'])})"
        if one["tested"]
        else "none tested"
    )
    theory = "" if alpha is None else f"; α^{place} = {share(alpha**place)}"
    return (
        f"Depth {place} (vLLM: place {place - 1}): accepted in {share(one['of_rounds'])} of all rounds; "
        f"{one['drafted']} drafted, {tested}{theory}."
    )


def draft_shape(found: dict, look: str = "light") -> go.Figure:
    """How many tokens were drafted at each depth, and how many of them accepted, rejected, never reached."""
    title = "shape of the drafts"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    depths, colours = found["depths"], theme(look)
    parts = {
        "accepted": ("accepted", [one["accepted"] for one in depths]),
        "rejected": ("rejected", [one["tested"] - one["accepted"] for one in depths]),
        "unreached": ("never looked at", [one["drafted"] - one["tested"] for one in depths]),
    }
    said = [
        f"Depth {one['depth']}: {counted(one['drafted'], 'token')} drafted in "
        f"{counted(one['rounds'], 'round')}; {one['accepted']} accepted, "
        f"{one['tested'] - one['accepted']} rejected, "
        f"{one['drafted'] - one['tested']} never looked at."
        for one in depths
    ]
    places = [one["depth"] for one in depths]
    made = chart(
        title,
        "drafted tokens by depth and by what became of them, measured",
        " ".join(said),
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
    return reader(made, places, said)


def acceptance_by_rank(found: dict, look: str = "light") -> go.Figure:
    """Share accepted of the tested by depth and by rank among siblings, as a heat map in grey."""
    title = "by depth and rank"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    rows, colours = found["ranks"], theme(look)
    widest = max(len(row["cells"]) for row in rows)

    def said(depth: int, rank: int, cell: dict | None) -> str:
        if cell is None:
            return f"Depth {depth}, rank {rank}: none tested."
        of = f"{cell['accepted']} of {cell['tested']} tested ({share(cell['share'])})"
        return f"Depth {depth}, rank {rank}: {of}."

    words = [[said(row["depth"], rank, cell) for rank, cell in enumerate(row["cells"], 1)] for row in rows]
    tested = [
        text
        for row, line in zip(rows, words, strict=True)
        for cell, text in zip(row["cells"], line, strict=True)
        if cell
    ]
    made = chart(
        title,
        "share accepted of those tested, measured; rank 1 is tried first",
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


def accepted_lengths(found: dict, look: str = "light") -> go.Figure:
    """vLLM's acceptance_histogram: rounds by the number of drafted tokens that they accepted."""
    title = "acceptance_histogram"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    counts, colours = found["histogram"], theme(look)
    rounds, places = sum(counts), list(range(len(counts)))
    said = [
        f"{value} of {counted(rounds, 'round')} accepted {counted(place, 'token')}."
        for place, value in enumerate(counts)
    ]
    made = chart(
        title,
        "rounds by number of accepted tokens, measured",
        " ".join(said),
        look,
        whole("accepted tokens", len(counts)),
        {"words": "rounds", "rangemode": "tozero"},
    )
    made.add_bar(
        x=places,
        y=counts,
        text=[str(value) if value else "" for value in counts],
        textposition="outside",
        cliponaxis=False,
        marker={"color": colours.ranks[0]},
        hoverinfo="skip",
    )
    return reader(made, places, said)


# ---- by kind, and where the drafts went --------------------------------------------------------------


def acceptance_by_class(found: dict, look: str = "light") -> go.Figure:
    """Share accepted of the tested by kind of the drafted token."""
    title = "by kind of token"
    if not found["metrics"] or not found["classes"]:
        return nothing(title, NO_SHARES if found["metrics"] else found["sentence"], look)
    rows = found["classes"]
    said = [
        f"{one['name']}: {one['accepted']} of {one['tested']} tested ({share(one['share'])})" for one in rows
    ]
    made = chart(
        title,
        "share accepted of those tested, measured",
        f"Accepted of the tested: {'; '.join(said)}.",
        look,
        {"range": [0, 1.35], "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        upwards(),
    )
    return made.add_bar(
        **across([one["name"] for one in rows], [one["share"] for one in rows], said),
        text=[f"{one['accepted']} of {one['tested']}" for one in rows],
        marker={"color": theme(look).ranks[0]},
    )


def drafts_went(found: dict, look: str = "light") -> go.Figure:
    """What became of all drafted tokens."""
    title = "where the drafts went"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    rows, colours = found["fates"], theme(look)
    total = sum(one["count"] for one in rows)
    said = [f"{one['says']}: {one['count']} of {total} ({share(one['share'])})" for one in rows]
    most = max(one["share"] for one in rows)
    made = chart(
        title,
        "share of all drafted tokens, measured",
        f"Of {total} drafted tokens, {'; '.join(said)}.",
        look,
        {"range": [0, 1.3 * most]},
        upwards(),
    )
    for one, sentence in zip(rows, said, strict=True):
        made.add_bar(
            **across([FATES[one["fate"]]], [one["share"]], [sentence]),
            text=[str(one["count"])],
            marker=bar_look(STATES[one["fate"]], colours),
            meta={"state": STATES[one["fate"]]},
        )
    return made


def drafting_time(found: dict, look: str = "light") -> go.Figure:
    """Seconds that the forwards of the draft and of the target took."""
    title = "the models' time"
    if not found["metrics"]:
        return nothing(title, found["sentence"], look)
    seconds, colours = found["drafting"], theme(look)
    took = seconds["draft"] + seconds["target"]
    if not took:
        return nothing(title, "No forward of this lane was timed.", look)
    names = {"draft": "drafting", "target": "the target"}
    said = [
        f"{names[key]}: {number(seconds[key], 3)} s, {seconds[key] / took:.0%} of the models' time"
        for key in names
    ]
    made = chart(
        title,
        "seconds of their forwards, measured",
        f"Of the models' time drafting took {seconds['draft'] / took:.0%}, measured: {'; '.join(said)}.",
        look,
        {"words": "seconds", "range": [0, 1.3 * max(seconds.values())]},
        upwards(),
    )
    return made.add_bar(
        **across(list(names.values()), [seconds[key] for key in names], said),
        text=[f"{seconds[key] / took:.0%}" for key in names],
        marker={"color": colours.ranks[0]},
        width=0.5,
    )
