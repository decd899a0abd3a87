"""Plan, or draw and filter?

PG-TD completes a text in each rollout and lets the results decide where to look next; its rival draws as many
texts at temperature 1 and keeps the best. Both see the examples that a list program must meet (its public
tests) and are graded by the share of them that their best program meets, and by hidden examples. ahead:
planning's mean lead in public tests, with the standard error over problems.
"""

import math
from statistics import fmean, stdev

from decoders.lane import Lane, Limits
from decoders.search.values import give_tests
from decoders.trace import Trace
from explorer.experiments import Chart, Line, Models, Result
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from explorer.tasks.own_tests import pass_rate

PAPERS = ("planning-with-large-language-models-for-code",)
TASK, COUNT, TOKENS = "list_program", 120, 24
ROLLOUTS = (1, 4, 16, 32)
Graded = tuple[float, bool, float]  # share of public tests, whether hidden ones are met, tokens read


def written(
    models: Models, strategy: str, problem: Problem, seed: int, parameters: dict
) -> tuple[Trace, str]:
    """One lane on one problem, and its text."""
    target = models["target"]
    lane = Lane(strategy, target.encode(problem.prompt), models, parameters, seed, Limits(TOKENS))
    trace = lane.run()
    text = b"".join(target.bytes_of(token) for token in trace.output() if token not in lane.eos)
    return trace, text.decode("utf-8", "replace")


def graded(problem: Problem, text: str, read: float) -> Graded:
    """What a program is worth."""
    return pass_rate(problem.prompt, text), TASKS[TASK].check(problem, text).right, read


def planned(models: Models, problem: Problem, rollouts: int) -> Graded:
    """PG-TD's program."""
    given = {"scorer": "tests", "rollouts": rollouts}
    trace, text = written(models, "pg_td", problem, 0, given)
    return graded(problem, text, trace.costs.totals()["target_tokens"])


def filtered(models: Models, problem: Problem) -> list[Graded]:
    """The best of the first so many samples, for each of ROLLOUTS; of equals the earlier one."""
    best, read, found = None, 0.0, []
    for seed in range(max(ROLLOUTS)):
        trace, text = written(models, "sample", problem, seed, {"temperature": 1.0})
        read += trace.costs.totals()["target_tokens"] - (len(trace.prompt) if seed else 0)  # it is read once
        one = graded(problem, text, read)
        best = one if best is None or one[0] > best[0] else best
        if seed + 1 in ROLLOUTS:
            found.append((*best[:2], read))
    return found


def run(models: Models) -> Result:
    """A row for each number of rollouts, and curves over the tokens read."""
    give_tests(pass_rate)
    asked = problems(TASK, COUNT, HELD_OUT_SEED)
    drawn = [filtered(models, problem) for problem in asked]
    rows: list[list] = []
    for at, rollouts in enumerate(ROLLOUTS):
        plan, rest = [planned(models, problem, rollouts) for problem in asked], [each[at] for each in drawn]
        ahead = [a[0] - b[0] for a, b in zip(plan, rest, strict=True)]
        error = stdev(ahead) / math.sqrt(COUNT)
        shares = [fmean([one[i] for one in ways]) for i in (0, 1, 2) for ways in (plan, rest)]
        rows.append([rollouts, *shares, fmean(ahead), error])
    last = rows[-1]
    says = [
        f"With {last[0]} rollouts planning's program meets {last[1]:.0%} of the public examples, the best of "
        f"as many samples {last[2]:.0%}: a lead of {last[7]:.3f}, with a standard error of {last[8]:.3f}.",
        f"Hidden examples: {last[3]:.0%} against {last[4]:.0%}; tokens read: {last[5]:,.0f} against "
        f"{last[6]:,.0f}.",
    ]
    columns = ["rollouts", "public, planned", "public, filtered", "hidden, planned", "hidden, filtered",
               "tokens, planned", "tokens, filtered", "ahead", "± error"]  # fmt: skip
    lines = [
        Line(name, [[r[5 + i], r[1 + i]] for r in rows]) for i, name in enumerate(("planned", "filtered"))
    ]
    chart = Chart("Public examples met by the best program", "tokens read", "share", lines)
    return Result(columns, rows, [said.replace(" -", " −") for said in says], chart)
