"""Which views a lane offers: those that are about something that its trace has."""

from decoders.trace.trace import Trace
from visualizers.registry import names
from visualizers.scene.view import VIEWS, Reads

# Views of many strategies, in the order in which they are offered, after those of few.
ORDER = (
    *("draft_rounds", "one_round", "beam_tree", "search_graph", "canvas", "canvas_grid", "parallel_grid"),
    *("graph", "ranks", "sees", "target_top_tokens", "accepted_lengths", "timeline", "score_terms", "queue"),
    *("sampler", "token_graph", "values_per_token", "constraint", "rules", "constraint_automaton", "bias"),
    *("memory", "entropy", "dependencies", "text"),
)


def views_of(trace: Trace, first: str | None = None) -> list[str]:
    """The names of the views of a trace: `first`, those about what few traces have, those of many, the text.

    Looks at each event once, and only for what no event of its class has shown yet.
    """
    wanted = {reads for name in names() for reads in VIEWS[name].reads}
    found: set[Reads] = set()
    waiting: dict[type, list[Reads]] = {}
    for reads in wanted:
        for kind in reads.kinds:
            waiting.setdefault(kind, []).append(reads)
    for step in trace.steps:
        for event in step.events:
            kind = type(event)
            if seen := [reads for reads in waiting.get(kind, ()) if reads.test(event)]:
                found.update(seen)
                waiting[kind] = [reads for reads in waiting[kind] if reads not in found]
    missing = {name for name in names() if not found.issuperset(VIEWS[name].reads)}
    offered = {name for name in names() if VIEWS[name].reads and name not in missing} | {"text"}
    own = [first] if first else []
    few = sorted(offered - set(ORDER))
    return list(dict.fromkeys([*own, *few, *(name for name in ORDER if name in offered)]))
