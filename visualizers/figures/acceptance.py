"""Charts of an acceptance report: one target, several drafters, many prompts.

Takes what `visualizers.analysis.acceptance_report.acceptance_report` gives. Raises Refusal with one sentence
for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.acceptance_report import BIN
from visualizers.analysis.cost_summary import share
from visualizers.analysis.rejection_causes import CAUSES
from visualizers.figures.charts import (
    across,
    chart,
    counted,
    hover,
    lane_line,
    nothing,
    reader,
    upwards,
    whole,
)
from visualizers.figures.theme import theme

NOTHING = "Nothing was drafted."


def why_rounds_ended(report: dict, look: str = "light") -> go.Figure:
    """Each drafter's rejections by cause, as shares."""
    title, drafts = "Why rounds ended", report["drafts"]
    if not any(draft["causes"] for draft in drafts):
        return nothing(title, "No drafted token was rejected.", look)
    names = [name for name in CAUSES if any(name in draft["causes"] for draft in drafts)]
    colours = theme(look)
    lines = [cause_text(draft) for draft in drafts]
    made = chart(
        title,
        "share of the rejections that ended a round, by cause; one bar per drafter",
        " ".join(lines),
        look,
        {"words": "share of rejections", "range": [0, 1.14], "tickformat": ".0%"},
        upwards(),
        len(drafts) if len(drafts) > 1 else 0,
    )
    for at, draft in enumerate(drafts):
        total = sum(draft["causes"].values()) or 1
        shares = [draft["causes"].get(name, 0) / total for name in names]
        hovers = [
            f"{draft['name']}, {name}: {draft['causes'].get(name, 0)} of {total} rejections. "
            + CAUSES[name].rstrip(".")
            for name in names
        ]
        bars = across(names, shares, hovers) | {"showlegend": len(drafts) > 1}
        tone = colours.ranks[min(2 * at, len(colours.ranks) - 1)]
        made.add_bar(**bars, name=draft["name"], text=[share(one) for one in shares], marker={"color": tone})
    room = 30 + 26 * len(names) * max(1, len(drafts)) ** 0.6
    return made.update_layout(barmode="group", height=max(made.layout.height, 130 + room))


def cause_text(draft: dict) -> str:
    """A drafter's rejections by cause, in a sentence."""
    total = sum(draft["causes"].values())
    if not total:
        return f"{draft['name']}: no drafted token was rejected."
    parts = ", ".join(f"{name} {count} ({share(count / total)})" for name, count in draft["causes"].items())
    return f"{draft['name']}: {counted(total, 'rejection')}: {parts}."


def by_position(report: dict, look: str = "light") -> go.Figure:
    """Acceptance over the position in the text, with 95 % intervals."""
    title = "Acceptance over the text"
    lines = [
        [(one["first"] + BIN // 2, one["share"], one["low"], one["high"]) for one in draft["positions"]]
        for draft in report["drafts"]
    ]
    texts = [
        [
            f"{draft['name']}, tokens {one['first']} to {one['last']}: {one['accepted']} of {one['tested']} "
            f"tested were accepted (95 %: {share(one['low'])} to {share(one['high'])})."
            for one in draft["positions"]
        ]
        for draft in report["drafts"]
    ]
    rest = "share of the tested tokens by their position, bars: 95 % intervals"
    return _lines(report, title, rest, "position in the text", lines, texts, look)


def by_entropy(report: dict, look: str = "light") -> go.Figure:
    """Acceptance of the tested tokens by the target's entropy."""
    title = "Acceptance by the target's entropy"
    lines = [
        [(one["low"], one["share"], None, None) for one in draft["entropies"]] for draft in report["drafts"]
    ]
    texts = [
        [
            f"{draft['name']}, {one['low']:g} bits or more: {one['accepted']} of {one['tested']} tested were "
            f"accepted ({share(one['share'])})."
            for one in draft["entropies"]
        ]
        for draft in report["drafts"]
    ]
    return _lines(
        report,
        title,
        "share of the tested tokens; marks at the start of bins",
        "bits",
        lines,
        texts,
        look,
    )


def by_depth(report: dict, look: str = "light") -> go.Figure:
    """Share of the tested tokens accepted, by depth from 1; vLLM counts positions from 0."""
    title = "Acceptance by depth"
    lines = [
        [(one["depth"], one["of_tested"], None, None) for one in draft["depths"] if one["tested"]]
        for draft in report["drafts"]
    ]
    texts = [
        [
            f"{draft['name']}, depth {one['depth']} (vLLM: position {one['depth'] - 1}): {one['accepted']} "
            f"of {one['tested']} tested were accepted ({share(one['of_tested'])}), in "
            f"{share(one['of_rounds'])} of all rounds."
            for one in draft["depths"]
            if one["tested"]
        ]
        for draft in report["drafts"]
    ]
    return _lines(report, title, "share of the tested tokens", "draft depth", lines, texts, look)


def by_prompt(report: dict, look: str = "light") -> go.Figure:
    """Tokens per round of every prompt, in the order of the file."""
    title = "Prompt by prompt"
    lines, texts = [], []
    for draft in report["drafts"]:
        known = [
            (at, one["mean_acceptance_length"])
            for at, one in enumerate(draft["prompts"], 1)
            if one["mean_acceptance_length"] is not None
        ]
        lines.append([(at, value, None, None) for at, value in known])
        texts.append([f"{draft['name']}, prompt {at}: {value:.2f} tokens per round." for at, value in known])
    rest = "mean_acceptance_length = 1 + accepted / rounds"
    made = _lines(report, title, rest, "prompt", lines, texts, look, top=None)
    return made.for_each_trace(lambda one: one.update(mode="markers"), {"mode": "lines+markers"})


def _lines(
    report: dict,
    title: str,
    rest: str,
    words: str,
    lines: list[list[tuple]],
    texts: list[list[str]],
    look: str,
    top: float | None = 1.04,
) -> go.Figure:
    """One line per drafter, of points (x, y, low, high) with a sentence each."""
    if not any(lines):
        return nothing(title, NOTHING, look)
    colours, drafts = theme(look), report["drafts"]
    made = chart(
        title,
        rest,
        " ".join(sentence for some in texts for sentence in some),
        look,
        whole(words, max(point[0] for line in lines for point in line)),
        {"range": [0, top]} if top else {"rangemode": "tozero"},
        len(drafts) if len(drafts) > 1 else 0,
    )
    if top:
        made.update_yaxes(tickformat=".0%")
    for at, (draft, line) in enumerate(zip(drafts, lines, strict=True)):
        if not line:
            continue
        x, y = [point[0] for point in line], [point[1] for point in line]
        bars = {}
        if line[0][2] is not None:
            up, down = [p[3] - p[1] for p in line], [p[1] - p[2] for p in line]
            grey = colours.surface["soft"]
            bars = {"error_y": {"array": up, "arrayminus": down, "thickness": 1, "width": 3, "color": grey}}
        made.add_trace(lane_line(draft["name"], "", at, x, y, colours, **bars))
    sentences: dict[float, list[str]] = {}
    for line, some in zip(lines, texts, strict=True):
        for point, sentence in zip(line, some, strict=True):
            sentences.setdefault(point[0], []).append(sentence)
    return reader(made, sorted(sentences), [" ".join(sentences[x]) for x in sorted(sentences)])


def both_sides(report: dict, look: str = "light") -> go.Figure:
    """How often both, one or neither of two drafters guess the target's token, at the same positions."""
    title, sides = "The same positions, both drafters", report["sides"]
    if not sides or not sides["places"] or "both" not in sides:
        sentence = "Two drafters that can guess at every position are compared at temperature 0."
        return nothing(title, sentence, look)
    a, b = sides["names"]
    counts = {
        "both right": sides["both"],
        f"only {a}": sides["only_a"],
        f"only {b}": sides["only_b"],
        "neither": sides["neither"],
    }
    total = sides["places"]
    hovers = [f"{name}: {n} of {total} positions" for name, n in counts.items()]
    made = chart(
        title,
        "share of the target's positions at which its token is the drafter's most likely one, teacher-forced",
        ". ".join(hovers) + ".",
        look,
        {"range": [0, 1.14], "tickformat": ".0%"},
        upwards(),
    )
    shares = [n / total for n in counts.values()]
    bars = across(list(counts), shares, hovers) | {"hovertext": [hover(one + ".") for one in hovers]}
    return made.add_bar(**bars, text=[share(one) for one in shares], marker={"color": theme(look).amounts[3]})
