"""Plan ahead, or sample and filter?

PG-TD completes a text in each rollout and lets the results decide where to search next; its baseline samples
as many texts at temperature 1 and keeps the best. Both see the examples that a list program must pass (its
public tests) and are graded by the share of them that their best program passes, and by hidden examples.
ahead: planning's mean lead in public tests over as many samples as it has rollouts, and over as many as the
target can draw while it reads no more tokens than planning did on the same problem, with standard errors over
problems.
"""

import math
from statistics import fmean, stdev

from decoders.trace.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.spread import over
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from explorer.tasks.own_tests import pass_rate

PAPERS = ("planning-with-large-language-models-for-code",)
TASK, COUNT, TOKENS = "list_program", 120, 24
ROLLOUTS = (1, 4, 16, 32)
COMPLETIONS = {"planned, greedy completions": 0.0, "planned, sampled completions": 1.0}  # temperature
Graded = tuple[float, bool, float]  # (share of public tests passed, whether hidden tests pass, tokens read)


def written(
    models: Models, strategy: str, problem: Problem, seed: int, parameters: dict
) -> tuple[Trace, str]:
    """The trace of one lane on one problem, and its text."""
    trace = decoded(models, strategy, problem.prompt, TOKENS, seed, **parameters)
    return trace, text_of(models, trace.output())


def graded(problem: Problem, text: str, read: float) -> Graded:
    """Grades a program."""
    return pass_rate(problem.prompt, text), TASKS[TASK].check(problem, text).right, read


def planned(models: Models, problem: Problem, rollouts: int, temperature: float) -> Graded:
    """The grade of PG-TD's program."""
    given = {"scorer": "tests", "rollouts": rollouts, "temperature": temperature}
    trace, text = written(models, "pg_td", problem, 0, given)
    return graded(problem, text, trace.costs.totals()["target_tokens"])


def filtered(models: Models, problem: Problem) -> list[Graded]:
    """The best of the first 1, 2, ... samples, up to the maximum of ROLLOUTS; the earlier one in a tie."""
    best, read, ranked = None, 0.0, []
    for seed in range(max(ROLLOUTS)):
        trace, text = written(models, "sample", problem, seed, {"temperature": 1.0})
        read += trace.costs.totals()["target_tokens"] - (
            len(trace.prompt) if seed else 0
        )  # the prompt is read once
        one = graded(problem, text, read)
        best = one if best is None or one[0] > best[0] else best
        ranked.append((*best[:2], read))
    return ranked


def for_as_much(plan: Graded, drawn: list[Graded]) -> Graded:
    """The result of filtering while it reads no more tokens than planning did; at least one
    sample.
    """
    return [one for at, one in enumerate(drawn) if not at or one[2] <= plan[2]][-1]


def lead(results: list[Graded], rest: list[Graded]) -> tuple[float, float]:
    """Mean lead in public tests, and its standard error."""
    ahead = [a[0] - b[0] for a, b in zip(results, rest, strict=True)]
    return fmean(ahead), stdev(ahead) / math.sqrt(len(ahead))


def row(way: str, rollouts: int, results: list[Graded], drawn: list[list[Graded]]) -> list[Cell]:
    """The tests that a way's programs pass, their cost, and the lead over filtering in public tests."""
    shares = [fmean([one[i] for one in results]) for i in range(3)]
    as_many = lead(results, [each[rollouts - 1] for each in drawn])
    as_much = lead(results, [for_as_much(*pair) for pair in zip(results, drawn, strict=True)])
    return [way, rollouts, *shares, *as_many, *as_much]


def run(models: Models) -> Result:
    """One row per way and number of rollouts, and curves over the tokens read."""
    asked = problems(TASK, COUNT, HELD_OUT_SEED)
    with progress.part(0.3):
        drawn = over(models, filtered, [(problem,) for problem in asked])
    rows = [row("filtered", r, [each[r - 1] for each in drawn], drawn) for r in ROLLOUTS]
    for way, temperature in progress.each(COMPLETIONS.items()):
        for rollouts in progress.each(ROLLOUTS, weight=float):
            results = over(models, planned, [(problem, rollouts, temperature) for problem in asked])
            rows.append(row(way, rollouts, results, drawn))
    columns = [
        "way",
        "rollouts",
        "public",
        "hidden",
        "tokens",
        "ahead of as many",
        "± error",
        "ahead for as much",
        "± error of that",
    ]
    lines = [Line(way, [[r[4], r[2]] for r in rows if r[0] == way]) for way in ("filtered", *COMPLETIONS)]
    says = [
        f"{r[0]}, {r[1]} rollouts: {r[2]:.0%} of the public examples and {r[3]:.0%} of the hidden ones for "
        f"{r[4]:,.0f} tokens"
        + (
            f"; {r[5]:+.3f} ± {r[6]:.3f} against as many samples, {r[7]:+.3f} ± {r[8]:.3f} against "
            "samples that read as many tokens."
            if r[0] != "filtered"
            else "."
        )
        for r in rows
        if r[1] == ROLLOUTS[-1]
    ]
    chart = Chart("Public examples met by the best program", "tokens read", "share", lines)
    return Result(columns, rows, [one.replace(" -", " −") for one in says], chart)


def finding(answer: dict) -> str:
    """Planning and filtering with the largest number of tries."""
    last = {row["way"]: row for row in rows_of(answer)}  # the last row of a way has the most rollouts
    drawn = last.pop("filtered")
    plan = max(last.values(), key=lambda row: row["public"])
    return (
        f"With {drawn['rollouts']} tries each, sampling and filtering meets {percent(drawn['public'])} of "
        f"the tests and reads {drawn['tokens']:,.0f} tokens per problem; planning meets "
        f"{percent(plan['public'])} and reads {plan['tokens']:,.0f}."
    )


def stands(answer: dict) -> Basis:
    """Problems, with the same tries for all ways."""
    last = {row["way"]: row for row in rows_of(answer)}  # the last row of a way has the most rollouts
    del last["filtered"]
    plan = max(last.values(), key=lambda row: row["public"])
    compared = [
        by_error("tests met with as many tries", plan["ahead of as many"], plan["± error"]),
        by_error("tests met for as many tokens", plan["ahead for as much"], plan["± error of that"]),
    ]
    return Basis({"problems": COUNT}, compared=compared)
