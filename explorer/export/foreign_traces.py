"""What a page must know to show traces that were decoded elsewhere: declarations and views.

A strategy that this program does not know is described by its trace. Knows traces, views and the registry.
"""

from decoders.registry import strategies
from decoders.trace.trace import Trace
from explorer.runs.view_cache import Fold
from visualizers.scene.registry import names

KINDS = {bool: "bool", int: "int", float: "float", str: "choice"}


def declarations(traces: list[Trace]) -> dict[str, dict]:
    """Name -> declaration of each strategy that occurs, in the registry's form."""
    known = strategies()
    return {
        trace.strategy: known[trace.strategy].declaration() if trace.strategy in known else described(trace)
        for trace in traces
    }


def described(trace: Trace) -> dict:
    """A declaration made from what a trace says of itself, with the views that find something to draw."""
    folds = {view: Fold(view, trace) for view in names()}
    drawn = [view for view, fold in folds.items() if any(fold.ops(i) for i in range(len(trace.steps)))]
    drawn = [view for view in drawn if not folds[view].problem and view != "text"]
    return {
        "name": trace.strategy,
        "title": trace.title,
        "family": "elsewhere",
        "summary": "From a file: this program can replay it, but does not know this strategy.",
        "papers": [],
        "needs": [],
        "parameters": [
            {"name": name, "kind": KINDS.get(type(value), "choice"), "default": value, "help": ""}
            | ({"choices": [value]} if KINDS.get(type(value), "choice") == "choice" else {})
            for name, value in trace.parameters.items()
        ],
        "views": [*drawn, "text"],
    }


def viewed(setup: dict, declared: dict[str, dict]) -> dict:
    """`setup` with a view that each lane has: its own if it names one, else its strategy's first."""
    lanes = []
    for lane in setup["lanes"]:
        views = declared[lane["strategy"]]["views"]
        lanes.append({**lane, "view": lane["view"] if lane.get("view") in views else views[0]})
    return {**setup, "lanes": lanes}
