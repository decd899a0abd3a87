"""Estimates how many bytes the steps of a run and the changes of its views take, as they grow.

The estimates are sums over the parts of events and marks, with their sizes in CPython; a test compares them
with what the interpreter reports as allocated.
"""

from decoders.trace.events import Cell, Commit, Depend, Distribution, Forward, Note, Propose, Step, Verdict
from decoders.trace.scores import AutomatonEdge, AutomatonState, ConstraintPlace, Measure, Rank, Span, Table

ROW, STEP = 1500, 200  # a step's row of costs; the step itself
EVENT = {
    Forward: 220,
    Propose: 160,
    Verdict: 190,
    Rank: 440,
    Measure: 440,
    Table: 900,
    Span: 440,
    ConstraintPlace: 1200,
    AutomatonEdge: 260,
    AutomatonState: 260,
    Distribution: 220,
    Commit: 240,
    Cell: 200,
    Depend: 160,
    Note: 240,
}
OFFERED = 120  # a token of a distribution: a list of two numbers
OP, NODE = 600, 200  # a change that a view makes; what a growing view remembers of one event about a node
REMEMBERED = (Propose, Verdict)


def step_bytes(step: Step) -> int:
    """The approximate size of a step of a trace, including its row of costs."""
    size = STEP + ROW
    for event in step.events:
        size += EVENT.get(type(event), 250)
        if isinstance(event, Distribution):
            size += OFFERED * len(event.top)
    return size


def ops_bytes(ops: list[dict]) -> int:
    """The approximate size of the changes that a view makes in one step."""
    return 120 + OP * len(ops)


def memory_of(step: Step) -> int:
    """The approximate size of what a growing view remembers of a step, besides its changes."""
    return NODE * sum(isinstance(event, REMEMBERED) for event in step.events)
