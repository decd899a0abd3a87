"""Charts of other draft shapes: tokens per round and speed by the length of a chain.

Takes the report of `visualizers.analysis.draft_what_if.what_if`. If nothing is known, a chart says so. Both
functions raise Refusal with one sentence for an unknown look.
"""

import plotly.graph_objects as go

from visualizers.analysis.draft_what_if import fastest
from visualizers.figures.charts import chart, dotted, lane_line, nothing, number, reader, whole
from visualizers.figures.theme import Theme, theme


def tokens_per_round(report: dict, lane: int | str = "", look: str = "light") -> go.Figure:
    """Tokens per round by the length of a chain, beside the lane's own and the shape that was asked for.

    lane: what the lane is called. Dotted: the best case of places that the run never asked the draft about.
    """
    title = "Tokens per round, by length of a chain"
    if not report["known"]:
        return nothing(title, report["sentence"], look)
    rest = "derived; dotted: best case for unknown positions" if report["exact"] else "estimated"
    name = f"lane {lane}".strip()
    words = f"{name.capitalize()}: {report['run']['tokens']:.2f} tokens per round, measured."
    made = _by_length(report, "tokens", title, rest, words, "tokens per round", look)
    depth = len(report["own"]["widths"])
    if depth <= len(report["chains"]):
        made.add_trace(_asked(report, depth, "tokens", theme(look)))
    made.add_hline(
        report["run"]["tokens"],
        line={"color": theme(look).surface["soft"], "width": 1},
        annotation={"text": f"{name}, measured", "font": {"size": 11}, "yshift": 2},
        annotation_position="top right",
    )
    return _read(made, report)


def speed(report: dict, look: str = "light") -> go.Figure:
    """How many times as fast as one token per forward, by the length of a chain, at the measured cost of a
    draft forward.
    """
    title = "Speed, by length of a chain"
    if not report["known"] or report["cost"] is None:
        sentence = report["sentence"] if not report["known"] else "No forward of draft and target was timed."
        return nothing(title, sentence, look)
    words = f"A draft forward costs {report['cost']:.2f} of a target's, measured. {which_is_fastest(report)}"
    rest = "tokens per round / (1 + levels × cost of a draft forward), derived"
    made = _by_length(report, "speedup", title, rest, words, "× plain decoding", look)
    made.add_hline(
        1,
        line={"color": theme(look).surface["soft"], "width": 1},
        annotation={"text": "plain decoding", "font": {"size": 11}, "yshift": 2},
        annotation_position="top right",
    )
    depth = len(report["own"]["widths"])
    if depth <= len(report["chains"]):
        made.add_trace(_asked(report, depth, "speedup", theme(look)))
    return _read(made, report)


def which_is_fastest(report: dict) -> str:
    """Which chain is the fastest, in a sentence; or that it is not known, and between which."""
    best = fastest(report["chains"])
    if best is not None:
        by = "" if report["exact"] else " by this estimate"
        reached = f"{span(best['speedup'], 2)} × plain decoding"
        return f"A chain of {len(best['widths'])} would be fastest{by}: {reached}."
    floor = max(row["speedup"][0] for row in report["chains"])
    able = [len(row["widths"]) for row in report["chains"] if row["speedup"][1] >= floor]
    return f"Which chain is fastest is not known: the ranges of chains of {listed(able)} overlap."


def listed(numbers: list[int]) -> str:
    """`3, 4 and 8`."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _by_length(report: dict, field: str, title: str, rest: str, words: str, y: str, look: str) -> go.Figure:
    """A line over the lengths of chains, and a dotted one for the best case where it is better."""
    chains, colours = report["chains"], theme(look)
    lengths = [len(row["widths"]) for row in chains]
    summary = " ".join([words, *(row_text(row, report["exact"]) for row in (*chains[:4], report["own"]))])
    made = chart(
        title,
        rest,
        f"{report['sentence']} {summary}",
        look,
        whole("drafted tokens in a chain", max(lengths)),
        {"words": y, "rangemode": "tozero"},
        3,
    )
    if any(row[field][0] != row[field][1] for row in chains):
        made.add_trace(dotted("best case", lengths, [row[field][1] for row in chains], colours))
    return made.add_trace(lane_line("", "chains", 0, lengths, [row[field][0] for row in chains], colours))


def _asked(report: dict, depth: int, field: str, colours: Theme) -> go.Scatter:
    """The requested shape at its depth, with a whisker from the worst to the best case."""
    low, high = report["own"][field]
    mark = lane_line("", shape(report["own"]["widths"]), 2, [depth], [low], colours)
    reach = {
        "type": "data",
        "symmetric": False,
        "array": [high - low],
        "arrayminus": [0],
        "width": 3,
        "thickness": 1,
        "color": colours.surface["text"],
    }
    return mark.update(mode="markers", marker={"size": 11}, error_y=reach, meta={"asked": True})


def _read(made: go.Figure, report: dict) -> go.Figure:
    places = [len(row["widths"]) for row in report["chains"]]
    lines = [row_text(row, report["exact"]) for row in report["chains"]]
    own = len(report["own"]["widths"])
    if own in places:
        lines[own - 1] += " " + row_text(report["own"], report["exact"])
    return reader(made, places, lines)


def shape(widths: list[int]) -> str:
    """A shape in words: `chain of 3`, `tree 3 2 1`."""
    return f"chain of {len(widths)}" if set(widths) == {1} else f"tree {' '.join(map(str, widths))}"


def row_text(row: dict, exact: bool) -> str:
    """The result of one shape, in a sentence."""
    speedup = f", speed: {span(row['speedup'], 2)} × plain decoding" if row["speedup"] else ""
    forwards = span(row["rounds"], 0 if exact else 1)
    name = shape(row["widths"])
    return f"A {name}: {span(row['tokens'], 2)} tokens per round, {forwards} target forwards{speedup}."


def span(ends: list[float], digits: int) -> str:
    """A range in words; one number if both ends print the same."""
    low, high = (number(end, digits) for end in ends)
    return low if low == high else f"{low} to {high}"
