"""Plan ahead, or sample and filter?

PG-TD completes a text in each rollout and lets the results decide where to search next; its baseline samples
as many texts at temperature 1 and keeps the best. Both see the examples that a list program must pass (its
public tests) and are graded by the share of them that their best program passes, and by hidden examples.
ahead: planning's mean lead in public tests over as many samples as it has rollouts, and over as many as the
target can draw while it reads no more tokens than planning did on the same problem, with standard errors over
problems.
"""

from statistics import fmean

from explorer.experiments import Models
from explorer.experiments.asked import decoded, problems_of, text_of
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.curves import CurvesBy
from explorer.experiments.reading import Row, highest, percent, rows_of
from explorer.experiments.statistics import lead
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import TASKS, Problem
from explorer.tasks.own_tests import pass_rate

PAPERS = ("planning-with-large-language-models-for-code",)
TASK, COUNT, TOKENS = "list_program", 120, 24
ROLLOUTS = (1, 4, 16, 32)
FILTERED = "filtered"
WAYS = {  # way -> strategy and temperature
    FILTERED: ("sample", 1.0),
    "planned, greedy completions": ("pg_td", 0.0),
    "planned, sampled completions": ("pg_td", 1.0),
}
Graded = tuple[float, bool, float]  # (share of public tests passed, whether hidden tests pass, tokens read)
Tries = dict[int, Graded]  # number of rollouts or samples -> the grade of the best program


def graded(models: Models, problem: Problem, tokens: list[int], read: float) -> Graded:
    """Grades a program."""
    text = text_of(models, tokens)
    return pass_rate(problem.prompt, text), TASKS[TASK].check(problem, text).right, read


def planned(models: Models, strategy: str, problem: Problem, temperature: float) -> Tries:
    """The grade of PG-TD's program after each number of rollouts."""
    grades, given = {}, {"scorer": "tests", "temperature": temperature}
    for rollouts in ROLLOUTS:
        trace = decoded(models, strategy, problem.prompt, TOKENS, rollouts=rollouts, **given)
        read = trace.costs.totals()["target_tokens"]
        grades[rollouts] = graded(models, problem, trace.output(), read)
    return grades


def filtered(models: Models, strategy: str, problem: Problem, temperature: float) -> Tries:
    """The best of the first 1, 2, ... samples, up to the maximum of ROLLOUTS; the earlier one in a tie."""
    best, read, grades = None, 0.0, {}
    for seed in range(max(ROLLOUTS)):
        trace = decoded(models, strategy, problem.prompt, TOKENS, seed, temperature=temperature)
        prompt_again = len(trace.prompt) if seed else 0  # the prompt is read once
        read += trace.costs.totals()["target_tokens"] - prompt_again
        one = graded(models, problem, trace.output(), read)
        best = one if best is None or one[0] > best[0] else best
        grades[seed + 1] = (*best[:2], read)
    return grades


def tried(models: Models, strategy: str, problem: Problem, temperature: float) -> Tries:
    """One problem, by planning or by filtering."""
    way = filtered if strategy == "sample" else planned
    return way(models, strategy, problem, temperature)


def for_as_much(plan: Graded, drawn: list[Graded]) -> Graded:
    """The result of filtering while it reads no more tokens than planning did; at least one sample."""
    return [one for at, one in enumerate(drawn) if not at or one[2] <= plan[2]][-1]


def measures(problems: list[Tries], drawn: list[Tries]) -> list[Row]:
    """For each number of rollouts: tests passed, their cost, and the lead over filtering in public tests."""
    rows = []
    for rollouts in ROLLOUTS:
        results = [one[rollouts] for one in problems]
        public, hidden, tokens = (fmean(grades) for grades in zip(*results, strict=True))
        tests = [one[0] for one in results]
        as_many = lead(tests, [one[rollouts][0] for one in drawn])
        much = [for_as_much(one, [*all.values()]) for one, all in zip(results, drawn, strict=True)]
        as_much = lead(tests, [one[0] for one in much])
        rows.append(
            {
                "rollouts": rollouts,
                "public": public,
                "hidden": hidden,
                "tokens": tokens,
                "ahead of as many": as_many[0],
                "± error": as_many[1],
                "ahead for as much": as_much[0],
                "± error of that": as_much[1],
            }
        )
    return rows


def says(rows: list[Row]) -> list[str]:
    """Every way with the most rollouts."""
    sentences = []
    for row in (row for row in rows if row["rollouts"] == ROLLOUTS[-1]):
        said = (
            f"{row['way']}, {row['rollouts']} rollouts: {row['public']:.0%} of the public examples and "
            f"{row['hidden']:.0%} of the hidden ones for {row['tokens']:,.0f} tokens"
        )
        if row["way"] != FILTERED:
            said += (
                f"; {row['ahead of as many']:+.3f} ± {row['± error']:.3f} against as many samples, "
                f"{row['ahead for as much']:+.3f} ± {row['± error of that']:.3f} against samples that read "
                "as many tokens"
            )
        sentences.append(f"{said}.")
    return sentences


SWEEP = Sweep(
    names=("way",),
    settings=lambda models: [
        Setting((way,), strategy, {"temperature": temperature}, problems_of([TASK], COUNT))
        for way, (strategy, temperature) in WAYS.items()
    ],
    decode=tried,
    measures=measures,
    says=says,
    chart=CurvesBy(
        "Public examples met by the best program", "tokens read", "share", "way", ("tokens", "public")
    ),
    sampled={"problems": COUNT},
)


def finding(answer: dict) -> str:
    """Planning and filtering with the largest number of tries."""
    last = {row["way"]: row for row in rows_of(answer)}  # the last row of a way has the most rollouts
    drawn = last.pop(FILTERED)
    plan = highest(last.values(), "public")
    return (
        f"With {drawn['rollouts']} tries each, sampling and filtering meets {percent(drawn['public'])} of "
        f"the tests and reads {drawn['tokens']:,.0f} tokens per problem; planning meets "
        f"{percent(plan['public'])} and reads {plan['tokens']:,.0f}."
    )


def stands(answer: dict) -> Basis:
    """Problems, with the same tries for all ways."""
    last = {row["way"]: row for row in rows_of(answer)}  # the last row of a way has the most rollouts
    del last[FILTERED]
    plan = highest(last.values(), "public")
    compared = [
        by_error("tests met with as many tries", plan["ahead of as many"], plan["± error"]),
        by_error("tests met for as many tokens", plan["ahead for as much"], plan["± error of that"]),
    ]
    return Basis(SWEEP.sampled, compared=compared)
