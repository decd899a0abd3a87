"""A trace as NetworkX graphs: for analysis in a notebook, and for files that other tools read.

    graph(trace, "tokens").nodes[17]["text"]

Draws nothing.
"""

from collections.abc import Callable

import networkx as nx

from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from visualizers.graphs.export import save
from visualizers.graphs.lattice import lattice
from visualizers.graphs.links import CriticalPath, attention, critical_path, dependencies
from visualizers.graphs.notes import notes
from visualizers.graphs.token_tree import beams, drafts, search, token_tree
from visualizers.graphs.walk import loops, walk

__all__ = ["KINDS", "CriticalPath", "critical_path", "graph", "loops", "save"]

KINDS: dict[str, Callable[[Trace, int | None], nx.DiGraph]] = {
    "tokens": token_tree,
    "drafts": drafts,
    "beams": beams,
    "search": search,
    "lattice": lattice,
    "walk": walk,
    "attention": attention,
    "dependencies": dependencies,
    "notes": notes,
}


def graph(trace: Trace, kind: str = "tokens", steps: int | None = None) -> nx.DiGraph:
    """The first `steps` steps of a trace (None: all) as a graph of one of `KINDS`.

    Raises Refusal with one sentence if there is no such kind, or nothing of it in this trace.
    """
    if kind not in KINDS:
        raise Refusal(f"There is no graph of kind {kind!r}; choose one of {', '.join(KINDS)}.")
    result = KINDS[kind](trace, steps)
    if not result:
        raise Refusal(f"This trace holds nothing for a graph of kind {kind!r}; try 'tokens'.")
    return result
