"""Declarations and views for traces that were decoded elsewhere.

A strategy that is not registered here gets a declaration made from its trace. Knows traces, views and the
registry.
"""

import json
from typing import Any

from decoders import memory_options
from decoders.registry import strategies
from decoders.strategy import constraint_views, switched_views
from decoders.trace.events import Distribution
from decoders.trace.scores import Measure
from decoders.trace.trace import Trace
from decoders.view_names import current
from explorer.runs.view_cache import Fold
from visualizers.registry import names
from visualizers.scene.view import VIEWS

# What must occur in a trace for a view to show more than the text: kinds of events or distributions,
# parameters, drafted tokens, or a value that was compared with a limit.
WANTS_OF_FOLDER = {
    "sampling": {"unwanted"},
    "search": {"Rank"},
    "speculative": {"drafted"},
    "diffusion": {"Cell"},
}
WANTS = {
    "bias": {"constraint_bias", "Table"},
    "constraint": {"forbidden"},
    "dependencies": {"Depend"},
    "entropy": {"Distribution"},
    "fragments": {"mark"},
    "values_per_token": {"Measure"},
    "graph": {"Verdict"},
    "memory": {"memory"},
    "parallel_grid": {"Cell"},
    "rules": {"constraint_text", "forbidden"},
    "sampler": {"Distribution"},
    "target_top_tokens": {"Distribution"},
    "constraint_automaton": {"constraint_text", "forbidden"},
    "threshold": {"limit"},
    "timeline": {"Forward"},
}
ELSEWHERE = "elsewhere"  # the family of strategies that are not registered here
KINDS = {bool: "bool", int: "int", float: "float"}


LOOKED_AT = 1000  # steps of a trace of another program in which a view must draw something to be offered


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
    """Makes a declaration from a trace, with the views that have something to draw."""
    present = kinds_of_data(trace)
    offered = [view for view in names() if view != "text" and not (trace.trust and of_search(view))]
    drawn = [view for view in offered if wants(view) <= present and draws(view, trace)]
    return {
        "name": trace.strategy,
        "title": trace.title,
        "family": ELSEWHERE,
        "summary": "From a file: this program does not know the strategy, but can replay the trace.",
        "papers": [],
        "needs": [],
        "parameters": [parameter_of(name, value) for name, value in shown(trace.parameters).items()],
        "views": [*drawn, "text"],
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


def kinds_of_data(trace: Trace) -> set[str]:
    """What a trace has, in the words of WANTS."""
    events = [event for step in trace.steps for event in step.events]
    present = {type(event).__name__ for event in events} | set(trace.parameters)
    present |= {"limit" for event in events if isinstance(event, Measure) and event.limit is not None}
    present |= {event.view for event in events if isinstance(event, Distribution)}
    return present | ({"drafted"} if trace.costs.proposed else set())


def of_search(view: str) -> bool:
    """Whether a view needs a search that goes on: the options that an evaluation scored are one level."""
    return folder_of(view) == "search" and view != "beam_tree"


def folder_of(view: str) -> str:
    """The family of a view, the folder that its file is in."""
    return VIEWS[view].__module__.split(".")[2]


def wants(view: str) -> set[str]:
    """What a trace must have for a view to show more than the text; most views draw the tokens of any
    trace.
    """
    of_folder = WANTS_OF_FOLDER.get(folder_of(view), set())
    return of_folder | WANTS.get(view, set())


def draws(view: str, trace: Trace) -> bool:
    """Whether a view draws something of the first steps of a trace, and does not fail there."""
    fold = Fold(view, trace)
    drawn = [fold.ops(step) for step in range(min(len(trace.steps), LOOKED_AT))]
    return any(drawn) and not fold.problem


def viewed(setup: dict, declared: dict[str, dict], traces: list[Trace]) -> dict:
    """Returns `setup` with a valid view for each lane: the one it names, or else its strategy's first.

    A trace whose title differs from its strategy's (see `decoders.watch`) gives its lane that title.
    """
    lanes = []
    for lane, trace in zip(setup["lanes"], traces, strict=True):
        declaration, given = declared[lane["strategy"]], lane.get("parameters") or {}
        if declaration["family"] == ELSEWHERE:
            given = shown(given)
        kind = given.get("constraint", "none")
        own = [*switched_views(given), *memory_options.views(given)]
        views = [*declaration["views"], *constraint_views(kind if isinstance(kind, str) else "none"), *own]
        title = {} if trace.title == declaration["title"] else {"title": trace.title}
        view = current(lane.get("view") or views[0])
        view = view if view in views else views[0]
        lanes.append({**lane, **title, "parameters": given, "view": view})
    return {**setup, "lanes": lanes}
