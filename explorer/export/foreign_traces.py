"""Declarations and views for traces that were decoded elsewhere.

A strategy that is not registered here gets a declaration made from its trace.
"""

import json
from typing import Any

from decoders.registry import strategies
from decoders.trace.trace import Trace
from decoders.view_names import current
from explorer.runs.offered_views import offered_views

ELSEWHERE = "elsewhere"  # the family of strategies that are not registered here
KINDS = {bool: "bool", int: "int", float: "float"}


def declarations(traces: list[Trace]) -> dict[str, dict]:
    """Maps the name of each strategy in these traces to its declaration, in the registry's form."""
    known = strategies()
    return {
        trace.strategy: known[trace.strategy].declaration()
        if trace.strategy in known
        else declaration_from(trace)
        for trace in traces
    }


def declaration_from(trace: Trace) -> dict:
    """Makes a declaration from a trace."""
    return {
        "name": trace.strategy,
        "title": trace.title,
        "family": ELSEWHERE,
        "summary": "From a file: this program does not know the strategy, but can replay the trace.",
        "papers": [],
        "needs": [],
        "parameters": [parameter_of(name, value) for name, value in shown(trace.parameters).items()],
        "views": offered_views(trace),
    }


def parameter_of(name: str, value: bool | int | float | str) -> dict:
    """The declaration of a parameter of which only this value is known."""
    kind = KINDS.get(type(value), "choice")
    known = {"name": name, "kind": kind, "default": value, "help": ""}
    return known | ({"choices": [value]} if kind == "choice" else {})


def shown(parameters: dict[str, Any]) -> dict[str, bool | int | float | str]:
    """Parameters as a page shows them: lists, objects and null, which no field holds, as JSON text."""
    return {
        name: value if isinstance(value, bool | int | float | str) else json.dumps(value, ensure_ascii=False)
        for name, value in parameters.items()
    }


def viewed(setup: dict, declared: dict[str, dict], traces: list[Trace]) -> dict:
    """Returns `setup` with a valid view for each lane: the one it names, or else its strategy's first.

    A trace whose title differs from its strategy's (see `decoders.watch`) gives its lane that title.
    """
    lanes = []
    for lane, trace in zip(setup["lanes"], traces, strict=True):
        declaration, given = declared[lane["strategy"]], lane.get("parameters") or {}
        if declaration["family"] == ELSEWHERE:
            given = shown(given)
        views = offered_views(trace)
        title = {} if trace.title == declaration["title"] else {"title": trace.title}
        view = current(lane.get("view") or views[0])
        view = view if view in views else views[0]
        lanes.append({**lane, **title, "parameters": given, "view": view})
    return {**setup, "lanes": lanes}
