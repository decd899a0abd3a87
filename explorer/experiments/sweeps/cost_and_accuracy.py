"""Does more computation give more right answers?

Strategies with small and large budgets solve problems that a program can check and that no model has read:
sums in steps, small Python functions and list programs with tests, records, lists, counts. How many answers
are right, and how many target forwards and how many tokens does a problem take? The share of right answers
has a 95% interval. won: right where greedy is wrong; lost: the reverse; p: of a sign test on these.
"""

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from decoders.search.stepwise.scorers import unscored
from explorer.experiments import Models
from explorer.experiments.asked import decoded, problems_of, text_of
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.curves import CurvesBy
from explorer.experiments.measures import right_by_task, right_with_interval, won_and_lost
from explorer.experiments.reading import Row, highest, percent, rows_of
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import TASKS, Problem

PAPERS = ()
COUNT, TOKENS = 25, 64
SCORERS = {  # task -> the scorer of searches that score texts; never the checker
    "word_problem": "reward",
    "list_program": "tests",
    "python": "tests",
    "json": "json",
    "sort": "reward",
    "count": "reward",
}
SCORED = ("a_star", "pg_td", "cards")  # strategies with a scorer
VOTE = {"temperature": 0.7}
Family = list[tuple[str, str, dict]]  # (name, strategy, parameters), cheap ones first
SETTINGS: dict[str, Family] = {
    "greedy": [("greedy", "greedy", {})],
    "beam": [(f"beam {n}", "beam", {"num_beams": n}) for n in (2, 4, 8)],
    "diverse beam": [
        (f"diverse {n}", "diverse_beam", {"num_beams": n, "num_beam_groups": n // 2}) for n in (4, 8)
    ],
    "sample": [(f"sample at {t}", "sample", {"temperature": t}) for t in (0.5, 1.0)],
    "majority": [
        (f"majority of {n}", "first_finish", VOTE | {"num_samples": n, "finishers": n}) for n in (4, 16)
    ],
    "first to finish": [(f"first of {n}", "first_finish", VOTE | {"num_samples": n}) for n in (4, 16)],
    "contrastive search": [("contrastive", "contrastive_search", {"top_k": 5, "penalty_alpha": 0.3})],
    "fsd": [("fsd", "fsd", {})],
    "contrastive decoding": [("against draft", "contrastive_decoding", {})],
    "adadec": [("adadec", "adadec", {})],
    "phi": [
        (f"phi {n} by {n}", "phi_decoding", {"num_beams": n, "num_rollouts": n, "step": "line"})
        for n in (2, 4)
    ],
    "A*": [(f"A* {n} calls", "a_star", {"num_samples": 3, "max_calls": n}) for n in (6, 24)],
    "tree search": [(f"pg_td {n}", "pg_td", {"rollouts": n}) for n in (4, 16)],
    "cards": [(f"cards {n}", "cards", {"max_rejections": n, "entropy_threshold": 1.0}) for n in (2, 8)],
}
FAMILY = {name: family for family, own in SETTINGS.items() for name, *_ in own}


@dataclass(frozen=True)
class Answer:
    """Whether one problem was solved, and what it cost."""

    task: str
    right: bool
    forwards: int
    tokens: int


def answer(models: Models, strategy: str, problem: Problem, **parameters: Any) -> Answer:
    """Runs one lane on one problem."""
    if strategy in SCORED:
        parameters["scorer"] = SCORERS[problem.task]
    trace = decoded(models, strategy, problem.prompt, TOKENS, **parameters)
    totals = trace.costs.totals()
    right = TASKS[problem.task].check(problem, text_of(models, trace.output())).right
    return Answer(problem.task, right, totals["target_forwards"], totals["target_tokens"])


def asked(models: Models, strategy: str, parameters: dict) -> list[tuple[Problem]]:
    """The problems of all tasks for which this target has the score that a strategy needs."""
    tasks = [
        task
        for task, scorer in SCORERS.items()
        if strategy not in SCORED or not unscored(parameters | {"scorer": scorer}, models["target"])
    ]
    return problems_of(tasks, COUNT)


def settings(models: Models) -> list[Setting]:
    """Every setting of every family."""
    return [
        Setting((name,), strategy, given, asked(models, strategy, given))
        for own in SETTINGS.values()
        for name, strategy, given in own
    ]


def says(rows: list[Row]) -> list[str]:
    """The setting that is right most often, for several budgets."""
    plain, sentences = rows[0], []
    for times in (2, 8, 32):
        budget = times * plain["tokens read"]
        within = [row for row in rows if None not in row.values() and row["tokens read"] <= budget]
        best = highest(within, "right")
        sentences.append(
            f"With at most {times} times the tokens that greedy reads, {best['strategy']} is right most "
            f"often: {best['right']:.0%} ({best['from']:.0%} to {best['to']:.0%}), against "
            f"{plain['right']:.0%} for greedy (p {best['p']:.2f})."
        )
    return sentences


SWEEP = Sweep(
    names=("strategy",),
    settings=settings,
    decode=answer,
    measures=lambda answers, greedy: {
        **right_by_task(answers, SCORERS),
        **right_with_interval(answers),
        "forwards": fmean(one.forwards for one in answers),
        "tokens read": fmean(one.tokens for one in answers),
        **won_and_lost(answers, greedy),
    },
    says=says,
    chart=CurvesBy(
        "Right answers and what they cost",
        "tokens read by the target, per problem",
        "right",
        lambda row: FAMILY[row["strategy"]],
        ("tokens read", "right", "from", "to"),
        where=lambda row: row["strategy"] == "greedy" or len(SETTINGS[FAMILY[row["strategy"]]]) > 1,
        log=True,
    ),
    sampled={"problems": COUNT * len(SCORERS)},
)


def finding(answer: dict) -> str:
    """Greedy search, beam search and the best of all settings."""
    rows = {row["strategy"]: row for row in rows_of(answer)}
    plain, beams = rows["greedy"], rows["beam 8"]
    best = highest(rows.values(), "right")
    return (
        f"Greedy search gets {percent(plain['right'])} of the answers right; eight beams read "
        f"{beams['tokens read'] / plain['tokens read']:.1f} times as many tokens for "
        f"{percent(beams['right'])}, and the best of {len(rows)} settings, {best['strategy']}, gets "
        f"{percent(best['right'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems, each answered once by every strategy."""
    rows = {row["strategy"]: row for row in rows_of(answer)}
    best = highest(rows.values(), "right")
    compared = [
        by_wins(
            f"right answers, {row['strategy']} against greedy", row["won"], row["lost"], COUNT * len(SCORERS)
        )
        for row in (rows["beam 8"], best)
    ]
    return Basis(SWEEP.sampled, compared=compared)
