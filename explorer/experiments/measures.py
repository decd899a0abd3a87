"""Measures of decodings, for the tables of sweeps: what a token costs, and how many answers are right.

Each folds traces, or answers to problems, into one cell; those at the end into several, by column.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from decoders.trace.trace import Trace
from explorer.experiments.reading import Row
from explorer.experiments.statistics import sign_test
from visualizers.analysis.calibration import wilson
from visualizers.analysis.lane_stats import LaneFacts


class Graded(Protocol):
    """An answer to a problem of a task."""

    task: str
    right: bool


# ---- traces ------------------------------------------------------------------------------------------------


def total(traces: Sequence[Trace], cost: str) -> float:
    """The sum of one of the costs of a trace, such as `target_forwards`."""
    return sum(trace.costs.totals()[cost] for trace in traces)


def tokens_per_forward(traces: Sequence[Trace]) -> float:
    """Committed tokens per target forward: the effective decoding length."""
    return total(traces, "new_tokens") / total(traces, "target_forwards")


def target_forwards_per_token(traces: Sequence[Trace]) -> float:
    """Target forwards per committed token."""
    return total(traces, "target_forwards") / total(traces, "new_tokens")


def draft_forwards_per_token(traces: Sequence[Trace]) -> float:
    """Draft forwards per committed token."""
    return total(traces, "draft_forwards") / total(traces, "new_tokens")


def thrown_away_per_token(traces: Sequence[Trace]) -> float:
    """Drafted tokens that were not accepted, per committed token."""
    return (total(traces, "proposed") - total(traces, "accepted")) / total(traces, "new_tokens")


def acceptance(traces: Sequence[Trace]) -> float | None:
    """Share of the tested drafted tokens that were accepted; None if none was tested."""
    tests = [test for trace in traces for made in LaneFacts(trace).rounds for test in made.tests]
    return sum(test.accepted for test in tests) / len(tests) if tests else None


# ---- answers -----------------------------------------------------------------------------------------------


def right(answers: Sequence[Graded]) -> float:
    """The share of right answers."""
    return sum(one.right for one in answers) / len(answers)


def right_by_task(answers: Sequence[Graded], tasks: Iterable[str]) -> Row:
    """The share of right answers to each task; None for a task without any."""
    by_task = {task: [one for one in answers if one.task == task] for task in tasks}
    return {task: right(some) if some else None for task, some in by_task.items()}


def right_with_interval(answers: Sequence[Graded]) -> Row:
    """The share of right answers with Wilson's 95% interval."""
    low, high = wilson(sum(one.right for one in answers), len(answers))
    return {"right": right(answers), "from": low, "to": high}


def won_and_lost(answers: Sequence[Graded], others: Sequence[Graded]) -> Row:
    """On how many of the same problems only the first answer is right, on how many only the other, and the p
    of a sign test on these.
    """
    pairs = list(zip(answers, others, strict=True))
    won = sum(one.right and not other.right for one, other in pairs)
    lost = sum(other.right and not one.right for one, other in pairs)
    return {"won": won, "lost": lost, "p": sign_test(won, lost)}
