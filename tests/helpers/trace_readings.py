"""What the checks of examples read from a trace."""

from decoders.trace.events import Commit, Verdict
from decoders.trace.trace import Trace


def forwards(trace: Trace) -> int:
    return trace.costs.totals()["target_forwards"]


def total(trace: Trace) -> float:
    """Sum of the target's log-probabilities of the text."""
    return sum(x for step in trace.steps for commit in step.of(Commit) for x in commit.logprobs)


def statuses(trace: Trace) -> set[str]:
    return {e.status for step in trace.steps for e in step.events if isinstance(e, Verdict)}
