"""Declarations and views for traces that were decoded elsewhere.

A strategy that is not registered here gets a declaration made from its trace. Knows traces, views and the
registry.
"""

from decoders import memory_options
from decoders.registry import strategies
from decoders.strategy import constraint_views, switched_views
from decoders.trace.events import Distribution
from decoders.trace.trace import Trace
from explorer.runs.view_cache import Fold
from visualizers.registry import names
from visualizers.scene.marks import VIEWS

# What must occur in a trace for a view to show more than the text: kinds of events or distributions,
# parameters, or drafted tokens.
WANTS_OF_FOLDER = {
    "sampling": {"unwanted"},
    "search": {"Score"},
    "speculative": {"draft"},
    "diffusion": {"Cell"},
}
WANTS = {
    "bias": {"constraint_bias", "Score"},
    "constraint": {"forbidden"},
    "dependencies": {"Depend"},
    "entropy": {"Distribution"},
    "fragments": {"mark"},
    "gauges": {"Score"},
    "graph": {"Verdict"},
    "memory": {"memory"},
    "parallel_grid": {"Cell"},
    "rules": {"constraint_text", "forbidden"},
    "sampler": {"Distribution"},
    "shortlist": {"Distribution"},
    "states": {"constraint_text", "forbidden"},
    "threshold": {"Score"},
    "timeline": {"Forward"},
}
KINDS = {bool: "bool", int: "int", float: "float", str: "choice"}


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
    folds = {view: Fold(view, trace) for view in names() if has_data(view, trace)}
    drawn = [view for view, fold in folds.items() if any(fold.ops(i) for i in range(len(trace.steps)))]
    drawn = [view for view in drawn if not folds[view].problem and view != "text"]
    return {
        "name": trace.strategy,
        "title": trace.title,
        "family": "elsewhere",
        "summary": "From a file: this program does not know the strategy, but can replay the trace.",
        "papers": [],
        "needs": [],
        "parameters": [
            {"name": name, "kind": KINDS.get(type(value), "choice"), "default": value, "help": ""}
            | ({"choices": [value]} if KINDS.get(type(value), "choice") == "choice" else {})
            for name, value in trace.parameters.items()
        ],
        "views": [*drawn, "text"],
    }


def has_data(view: str, trace: Trace) -> bool:
    """Whether the trace has the events that a view is about; most views draw the tokens of any trace."""
    events = [event for step in trace.steps for event in step.events]
    present = {type(event).__name__ for event in events}
    present |= set(trace.parameters)
    present |= {"draft"} if trace.costs.proposed else set()
    present |= {event.view for event in events if isinstance(event, Distribution)}
    of_folder = WANTS_OF_FOLDER.get(VIEWS[view].__module__.split(".")[2], set())
    return of_folder | WANTS.get(view, set()) <= present


def viewed(setup: dict, declared: dict[str, dict], traces: list[Trace]) -> dict:
    """Returns `setup` with a valid view for each lane: the one it names, or else its strategy's first.

    A trace whose title differs from its strategy's (see `decoders.watch`) gives its lane that title.
    """
    lanes = []
    for lane, trace in zip(setup["lanes"], traces, strict=True):
        declaration = declared[lane["strategy"]]
        kind = (lane.get("parameters") or {}).get("constraint", "none")
        given = lane.get("parameters") or {}
        own = [*switched_views(given), *memory_options.views(given)]
        views = [*declaration["views"], *constraint_views(kind), *own]
        title = {} if trace.title == declaration["title"] else {"title": trace.title}
        lanes.append({**lane, **title, "view": lane["view"] if lane.get("view") in views else views[0]})
    return {**setup, "lanes": lanes}
