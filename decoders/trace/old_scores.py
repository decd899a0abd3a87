"""Scores of traces of version 1, read as the events of version 2: there one event had a name, a text as its
level, and parts whose names held numbers.
"""

from contextlib import suppress
from typing import Any

from decoders.trace.scores import (
    OTHERS,
    AutomatonEdge,
    AutomatonState,
    ConstraintPlace,
    Measure,
    Placed,
    Rank,
    Scored,
    ScoreName,
    Span,
    Table,
)

GAUGE = "gauge"  # level of a value on a scale from 0 to its part `high`
MAX_DIGITS = 12
NAMES = {"tokens a round": ScoreName.TOKENS_PER_ROUND}  # older names
RANKED = {  # names of what candidates are ranked by, where a score has no rank
    ScoreName.AUGMENTED_SUM,
    ScoreName.END_OF_TEXT,
    ScoreName.FORESIGHT,
    ScoreName.GREEDY_SPAN,
    ScoreName.LABEL,
    ScoreName.LENGTH_PENALISED,
    ScoreName.MEAN_CONFIDENCE,
    ScoreName.PATH,
    ScoreName.PATH_COST,
    ScoreName.PERTURBED_VALUE,
    ScoreName.PHI,
    ScoreName.PRIORITY,
    ScoreName.REWARD,
    ScoreName.SCORE,
    ScoreName.SLOT,
    ScoreName.SPAN,
    ScoreName.STEP,
    ScoreName.SUM_LOGPROB,
    ScoreName.TEXT_VALUE,
    ScoreName.VISITS,
}
# parts with a number in their names: the columns of a table
TABLES = {
    ScoreName.TOKENS_PER_ROUND: "nodes",
    ScoreName.COSINE: "skipped",
    ScoreName.STRONG_EXPERTS: "expert",
    ScoreName.WEAK_EXPERTS: "expert",
}


def event_of(record: dict[str, Any]) -> Scored | Placed:
    """The event of version 2 of one score. A score of another program may have one of our names without the
    parts: it becomes a plain value.
    """
    node, total, parts = record["node"], record["total"], dict(record.get("parts", {}))
    name, level, rank = NAMES.get(record["name"], record["name"]), record.get("level"), record.get("rank")
    with suppress(KeyError, ValueError, OverflowError):
        match name:
            case "constraint_place":
                return place(node, total, parts)
            case "automaton_edge":
                return edge(node, total, parts, level)
            case "automaton_state":
                return state(node, total, parts, level)
            case ScoreName.BIAS:
                return bias(node, total, parts, level)
            case ScoreName.UNIT:
                first, last = int(parts["first"]), int(parts["last"])
                return Span(node, name, total, number=last_number(level), first=first, last=last)
            case _ if name in TABLES and any(part.startswith(f"{TABLES[name]} ") for part in parts):
                return table(node, name, total, parts, level)
    number = last_number(level)
    if rank is not None or name in RANKED:
        units = units_of(level) if name == ScoreName.PLAN else None
        return Rank(node, name, total, parts, level, number, rank, units)
    limit = parts.pop("limit", None)
    if level == GAUGE:
        scale = parts.pop("high", None)
        return Measure(node, name, total, parts, limit=limit, scale=scale)
    return Measure(node, name, total, parts, level, number, limit)


def place(node: int, total: float, parts: dict[str, float]) -> ConstraintPlace:
    """Parts are named by characters, `12-18`: 1 of what may come next, 0 of the rules around it."""
    awaited: list[list[int]] = []
    around: list[list[int]] = []
    for part, value in parts.items():
        start, stop = part.split("-")
        (awaited if value else around).append([int(start), int(stop)])
    return ConstraintPlace(node, awaited, around, bool(total))


def edge(node: int, total: float, parts: dict[str, float], level: str | None) -> AutomatonEdge:
    """The level is what the edge reads."""
    ends = bool(parts["from end"]), bool(parts["to end"])
    return AutomatonEdge(node, int(total), int(parts["from"]), int(parts["to"]), level or "", *ends)


def state(node: int, total: float, parts: dict[str, float], level: str | None) -> AutomatonState:
    """Parts are named by the edges that were taken, `took 7`; the total is an edge at the level `edge`."""
    took = [int(part.removeprefix("took ")) for part in parts if part.startswith("took ")]
    if level == "edge":
        return AutomatonState(node, None, int(total), int(parts["along"]), took)
    return AutomatonState(node, int(total), None, None, took)


def bias(node: int, total: float, parts: dict[str, float], level: str | None) -> Table:
    """Parts are named by tokens: `masked 7`, `true 7`, and `error 7` where it is estimated."""
    rows: list[list[float]] = []
    others: dict[str, float] = {}
    for part, value in parts.items():
        kind, _, token = part.partition(" ")
        if kind not in ("masked", "true", "error"):
            others[part] = value
        elif kind == "masked" and f"true {token}" in parts:
            number = OTHERS if token == "others" else int(token)
            error = [parts[f"error {token}"]] if f"error {token}" in parts else []
            rows.append([number, value, parts[f"true {token}"], *error])
    return Table(node, ScoreName.BIAS, total, others, level, unit="token", rows=rows)


def table(node: int, name: str, total: float, parts: dict[str, float], level: str | None) -> Table:
    """Parts are named by what the table is of: `nodes 3`, `expert 7`."""
    unit = TABLES[name]
    rows: list[list[float]] = []
    others: dict[str, float] = {}
    for part, value in parts.items():
        kind, _, number = part.rpartition(" ")
        if kind == unit:
            rows.append([int(number), value])
        else:
            others[part] = value
    chosen = int(others.pop("chosen")) if "chosen" in others else None
    return Table(node, name, total, others, level, last_number(level), unit, rows, chosen)


def last_number(level: str | None) -> int | None:
    """The number at the end of a level, `layer 3`."""
    last = (level or "").rpartition(" ")[2]
    return int(last) if last.isdecimal() and len(last) <= MAX_DIGITS else None


def units_of(level: str | None) -> list[int] | None:
    """The units of a plan, `3 1 2`."""
    units = [last_number(unit) for unit in (level or "").split()]
    known = [unit for unit in units if unit is not None]
    return known if known and len(known) == len(units) else None
