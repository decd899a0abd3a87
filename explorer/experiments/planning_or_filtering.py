"""Plan, or draw and filter?

PG-TD completes a text in each rollout and lets the results decide where to look next; its rival draws as many
texts at temperature 1 and keeps the best. Both see the examples that a list program must meet (its public
tests) and are graded by the share of them that their best program meets, and by hidden examples. ahead:
planning's mean lead in public tests, with the standard error over problems.
"""

import math
from statistics import fmean, stdev

from decoders.search.values import give_tests
from decoders.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result
from explorer.experiments.asked import decoded, said
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from explorer.tasks.own_tests import pass_rate

PAPERS = ()  # planning does not beat filtering here by two standard errors, which its study found
TASK, COUNT, TOKENS = "list_program", 120, 24
ROLLOUTS = (1, 4, 16, 32)
COMPLETIONS = {"planned, greedy completions": 0.0, "planned, sampled completions": 1.0}  # temperature
Graded = tuple[float, bool, float]  # share of public tests, whether hidden ones are met, tokens read


def written(
    models: Models, strategy: str, problem: Problem, seed: int, parameters: dict
) -> tuple[Trace, str]:
    """One lane on one problem, and its text."""
    trace = decoded(models, strategy, problem.prompt, TOKENS, seed, **parameters)
    return trace, said(models, trace.output())


def graded(problem: Problem, text: str, read: float) -> Graded:
    """What a program is worth."""
    return pass_rate(problem.prompt, text), TASKS[TASK].check(problem, text).right, read


def planned(models: Models, problem: Problem, rollouts: int, temperature: float) -> Graded:
    """PG-TD's program."""
    given = {"scorer": "tests", "rollouts": rollouts, "temperature": temperature}
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


def row(way: str, rollouts: int, found: list[Graded], rest: list[Graded]) -> list[Cell]:
    """What a way's programs meet and cost, and how far it is ahead of `rest` in public tests."""
    ahead = [a[0] - b[0] for a, b in zip(found, rest, strict=True)]
    shares = [fmean([one[i] for one in found]) for i in range(3)]
    return [way, rollouts, *shares, fmean(ahead), stdev(ahead) / math.sqrt(len(ahead))]


def run(models: Models) -> Result:
    """A row for each way and number of rollouts, and curves over the tokens read."""
    give_tests(pass_rate)
    asked = problems(TASK, COUNT, HELD_OUT_SEED)
    drawn = [filtered(models, problem) for problem in asked]
    rest = {rollouts: [each[at] for each in drawn] for at, rollouts in enumerate(ROLLOUTS)}
    rows = [row("filtered", rollouts, found, found) for rollouts, found in rest.items()]
    for way, temperature in COMPLETIONS.items():
        for rollouts in ROLLOUTS:
            found = [planned(models, problem, rollouts, temperature) for problem in asked]
            rows.append(row(way, rollouts, found, rest[rollouts]))
    columns = ["way", "rollouts", "public", "hidden", "tokens", "ahead", "± error"]
    lines = [Line(way, [[r[4], r[2]] for r in rows if r[0] == way]) for way in ("filtered", *COMPLETIONS)]
    says = [
        f"{r[0]}, {r[1]} rollouts: {r[2]:.0%} of the public examples and {r[3]:.0%} of the hidden ones for "
        f"{r[4]:,.0f} tokens" + (f"; ahead by {r[5]:.3f} ± {r[6]:.3f}." if r[0] != "filtered" else ".")
        for r in rows
        if r[1] == ROLLOUTS[-1]
    ]
    chart = Chart("Public examples met by the best program", "tokens read", "share", lines)
    return Result(columns, rows, [one.replace(" -", " −") for one in says], chart)
