"""Which views a lane offers: those that are about something that its trace has."""

from decoders.trace.trace import Trace
from visualizers.registry import names
from visualizers.scene.view import VIEWS

# Views of many strategies, in the order in which they are offered, after those of few.
ORDER = (
    *("draft_rounds", "one_round", "beam_tree", "search_graph", "canvas", "canvas_grid", "parallel_grid"),
    *("graph", "ranks", "sees", "target_top_tokens", "accepted_lengths", "timeline", "score_terms", "queue"),
    *("sampler", "token_graph", "values_per_token", "constraint", "rules", "constraint_automaton", "bias"),
    *("memory", "entropy", "dependencies", "text"),
)


def views_of(trace: Trace, first: str | None = None) -> list[str]:
    """The names of the views of a trace: `first`, those about what few traces have, those of many, the text.

    Looks at each event once, and only for views that have found nothing yet.
    """
    waiting = {(name, reads) for name in names() for reads in VIEWS[name].reads}
    for step in trace.steps:
        for event in step.events:
            waiting -= {(name, reads) for name, reads in waiting if reads(event)}
    missing = {name for name, _ in waiting}
    offered = {name for name in names() if VIEWS[name].reads and name not in missing} | {"text"}
    own = [first] if first else []
    few = sorted(offered - set(ORDER))
    return list(dict.fromkeys([*own, *few, *(name for name in ORDER if name in offered)]))
