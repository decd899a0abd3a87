"""The views that the lane of a trace offers once it has run."""

from decoders.registry import declarations
from decoders.trace.trace import Trace
from visualizers.offered import views_of


def offered_views(trace: Trace) -> list[str]:
    """The views of a trace; its strategy's own first, if the strategy is registered here."""
    first = {one["name"]: one["views"][0] for one in declarations()}
    return views_of(trace, first.get(trace.strategy))
