"""Traces written by hand, event by event."""

from decoders.trace.events import Step
from decoders.trace.trace import Trace


def trace_of(words: list[bytes], *rounds: list) -> Trace:
    """A speculative lane of these rounds, events each, after a prompt of the first of `words`."""
    trace = Trace("any", "Any", {}, 0, {"target": "t", "draft": "d"}, [0], dict(enumerate(words)))
    for i, events in enumerate(rounds):
        trace.append(Step(i, list(events), float(i)))
    return trace
