"""A comparison of lanes as the page and saved pages show it: marks, texts side by side, charts, costs.

Takes the result of `visualizers.analysis.comparison.compare`. All HTML is made and escaped here, so that the
text of a model is never markup.
"""

import html
from itertools import groupby
from typing import Any

LIKELIHOODS = {"mean": "mean per token", "total": "total"}
REFERENCE = "Grey: text that lane {lane} does not have. ≠: the first difference."
# The charts, row by row; a row is shown if its first chart exists.
ROWS = (
    ("tokens", "likelihood"),
    ("entropies", "log_probabilities"),
    ("depth", "class"),
    ("beginnings",),
)
NO_TEXT = "No token is final yet."


def marks(compared: dict) -> dict:
    """What the lanes show of a comparison: `{sentence, result, lanes: [{lane, relation, parting}]}`."""
    names = ("lane", "relation", "parting")
    return {
        "sentence": compared["sentence"],
        "result": compared["result"],
        "lanes": [{name: lane[name] for name in names} for lane in compared["lanes"]],
    }


def texts(compared: dict) -> str:
    """The texts side by side as HTML: prose with line breaks, marked differences, and a copy button each."""
    several = any(lane["relation"] for lane in compared["lanes"])
    first = next(
        (lane["lane"] for lane in compared["lanes"] if several and lane["relation"] is None), None
    )  # the lane that the others are compared with
    note = "" if first is None else f'<p class="soft">{REFERENCE.format(lane=first)}</p>'
    result = f'<p class="result">{html.escape(compared["result"])}</p>' if compared["result"] else ""
    beside = "".join(text(lane, several) for lane in compared["lanes"])
    return f'{result}{note}<div class="texts-beside">{beside}</div>'


def text(lane: dict, several: bool) -> str:
    """One lane's text as HTML, below its name and how it compares with the others."""
    stands = (
        lane["relation"]["caption"] if lane["relation"] else "the others are compared with this one" * several
    )
    known = "; ".join(filter(None, [stands, lane["greedy"]["caption"] if lane["tokens"] else ""]))
    name = html.escape(f"{lane['lane']} {lane['label']}")
    button = (
        f'<button type="button" class="copy" aria-label="Copy the text of lane {lane["lane"]}">Copy</button>'
    )
    return (
        f'<section aria-label="Text of lane {lane["lane"]}"><header><b>{name}</b>{button}</header>'
        f'<p class="soft">{html.escape(known[:1].upper() + known[1:])}.</p>'
        f'<div class="lane-text" tabindex="0" role="group" aria-label="Text">{prose(lane) or NO_TEXT}</div>'
        "</section>"
    )


def prose(lane: dict) -> str:
    """A lane's text as HTML, with marks around the differing tokens and around the first difference."""
    parting = lane["parting"]["position"] - 1 if lane["parting"] else None

    def look(at: int) -> str:
        return "parts" if at == parting else "differs" if lane["differs"][at] else ""

    made = []
    for name, places in groupby(range(len(lane["text"])), look):
        words = html.escape("".join(lane["text"][at] for at in places))
        title = f' title="{html.escape(lane["parting"]["words"])}"' if name == "parts" else ""
        made.append(f'<mark class="{name}"{title}>{words}</mark>' if name else words)
    return "".join(made)


def charts(compared: dict, charge: str, likelihood: str, look: str) -> dict[str, Any]:
    """The charts that apply to these lanes, by name, as Plotly figures; see `ROWS`.

    charge: a key of `compared["charges"]`; likelihood: one of LIKELIHOODS; look: "light" or "dark".
    """
    return by_cost(compared, charge, likelihood, look) | by_token(compared, look)


def by_cost(compared: dict, charge: str, likelihood: str, look: str) -> dict[str, Any]:
    """The charts that have a cost on one axis."""
    from visualizers.figures import comparison  # on demand: plotly is slow to import

    return {
        "tokens": comparison.tokens_reached(compared, charge, look),
        "likelihood": likelihood_chart(compared, charge, likelihood, look),
    }


def likelihood_chart(compared: dict, charge: str, likelihood: str, look: str) -> Any:
    """The chart of one of LIKELIHOODS against a cost."""
    from visualizers.figures import comparison

    charts = {"mean": comparison.mean_log_probability, "total": comparison.total_log_probability}
    return charts[likelihood](compared, charge, look)


def by_token(compared: dict, look: str) -> dict[str, Any]:
    """The charts that have no cost on an axis."""
    from visualizers.figures import compared_acceptance, comparison, first_differences

    made = {
        "entropies": comparison.entropies(compared, look),
        "log_probabilities": comparison.log_probabilities(compared, look),
    }
    if compared_acceptance.drafting(compared):
        made["depth"] = compared_acceptance.acceptance_by_depth(compared, look)
        made["class"] = compared_acceptance.acceptance_by_class(compared, look)
    if len(compared["pairs"]) > 1:
        made["beginnings"] = first_differences.shared_beginnings(compared, look)
    return made


def table(compared: dict) -> dict:
    """All costs, one row per lane: `{headers, data, metadata}`; displayed rounded, sorted by exact values."""
    rows = compared["table"]["rows"]
    names = [f"{row['lane']} {row['label']}" for row in rows]
    data = [[name, *map(plain, row["cells"])] for name, row in zip(names, rows, strict=True)]
    shown = [[name, *(cell["label"] for cell in row["cells"])] for name, row in zip(names, rows, strict=True)]
    headers = ["lane", *(column["name"] for column in compared["table"]["columns"])]
    return {"headers": headers, "data": data, "metadata": {"display_value": shown}}


def plain(cell: dict) -> float | str | None:
    """The value of a table cell; a list becomes text."""
    return " ".join(map(str, cell["value"])) if isinstance(cell["value"], list) else cell["value"]
