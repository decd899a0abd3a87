"""Does more computation give more right answers?

Strategies with small and large budgets solve problems that a program can check and that no model has read:
sums in steps, small Python functions and list programs with tests, records, lists, counts. How many answers
are right, and how many target forwards and how many tokens does a problem take? The share of right answers
has a 95% interval. won: right where greedy is wrong; lost: the reverse; p: of a sign test on these.
"""

from dataclasses import dataclass
from statistics import fmean

from decoders.search.stepwise.scorers import unscored
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.spread import over
from explorer.experiments.statistics import sign_test
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from visualizers.analysis.calibration import wilson

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
Setting = tuple[str, str, dict]  # (name, strategy, parameters)
SETTINGS: dict[str, list[Setting]] = {  # family -> settings, cheap ones first
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


@dataclass(frozen=True)
class Answer:
    """Whether one problem was solved, and what it cost."""

    right: bool
    forwards: int
    tokens: int


def answer(models: Models, strategy: str, parameters: dict, problem: Problem) -> Answer:
    """Runs one lane on one problem."""
    trace = decoded(models, strategy, problem.prompt, TOKENS, **parameters)
    totals = trace.costs.totals()
    right = TASKS[problem.task].check(problem, text_of(models, trace.output())).right
    return Answer(right, totals["target_forwards"], totals["target_tokens"])


def answers(models: Models, strategy: str, setting: dict, task: str) -> list[Answer] | None:
    """All problems of a task; None if the strategy needs a score that this target does not have."""
    if strategy in SCORED:
        setting = setting | {"scorer": SCORERS[task]}
        if unscored(setting, models["target"]):
            return None
    asked = problems(task, COUNT, HELD_OUT_SEED)
    return over(models, answer, [(strategy, setting, problem) for problem in asked])


def row(name: str, graded: dict[str, list[Answer]], plain: dict[str, list[Answer]]) -> list:
    """The results of a setting on the tasks of `graded`; won and lost are relative to `plain`."""
    every = [one for task in graded for one in graded[task]]
    pairs = [pair for task in graded for pair in zip(graded[task], plain[task], strict=True)]
    won = sum(a.right and not b.right for a, b in pairs)
    lost = sum(b.right and not a.right for a, b in pairs)
    right = sum(one.right for one in every)
    by_task: list[Cell] = [
        fmean([a.right for a in graded[task]]) if task in graded else None for task in SCORERS
    ]
    cost = [fmean([one.forwards for one in every]), fmean([one.tokens for one in every])]
    share = [right / len(every), *wilson(right, len(every))]
    return [name, *by_task, *share, *cost, won, lost, sign_test(won, lost)]


def run(models: Models) -> Result:
    """One row per setting, over all tasks; a curve for each family with several settings, and greedy."""
    plain: dict[str, list[Answer]] = {}
    rows, lines = [], []
    columns = ["strategy", *SCORERS, "right", "from", "to", "forwards", "tokens read", "won", "lost", "p"]
    at = {column: i for i, column in enumerate(columns)}
    drawn = [at[column] for column in ("tokens read", "right", "from", "to")]
    for family, settings in progress.each(SETTINGS.items(), weight=lambda one: len(one[1])):
        for name, strategy, setting in progress.each(settings):
            by_task = {task: answers(models, strategy, setting, task) for task in progress.each(SCORERS)}
            by_task = {task: graded for task, graded in by_task.items() if graded}
            plain = plain or by_task
            rows.append(row(name, by_task, plain))
        if len(settings) > 1 or family == "greedy":
            points = [[r[i] for i in drawn] for r in rows[-len(settings) :]]
            lines.append(Line(family, sorted(points)))
    says, whole = [], [r for r in rows if None not in r]
    for times in (2, 8, 32):
        budget = times * rows[0][at["tokens read"]]
        best = max((r for r in whole if r[at["tokens read"]] <= budget), key=lambda r: r[at["right"]])
        says.append(
            f"With at most {times} times the tokens that greedy reads, {best[0]} is right most often: "
            f"{best[at['right']]:.0%} ({best[at['from']]:.0%} to {best[at['to']]:.0%}), against "
            f"{rows[0][at['right']]:.0%} for greedy (p {best[at['p']]:.2f})."
        )
    title, costs = "Right answers and what they cost", "tokens read by the target, per problem"
    return Result(columns, rows, says, Chart(title, costs, "right", lines, log=True))


def finding(answer: dict) -> str:
    """Greedy search, beam search and the best of all settings."""
    rows = {row["strategy"]: row for row in rows_of(answer)}
    plain, beams = rows["greedy"], rows["beam 8"]
    best = max(rows.values(), key=lambda row: row["right"])
    return (
        f"Greedy search gets {percent(plain['right'])} of the answers right; eight beams read "
        f"{beams['tokens read'] / plain['tokens read']:.1f} times as many tokens for "
        f"{percent(beams['right'])}, and the best of {len(rows)} settings, {best['strategy']}, gets "
        f"{percent(best['right'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems, each answered once by every strategy."""
    rows = {row["strategy"]: row for row in rows_of(answer)}
    best = max(rows.values(), key=lambda row: row["right"])
    many = COUNT * len(SCORERS)
    compared = [
        by_wins(f"right answers, {row['strategy']} against greedy", row["won"], row["lost"], many)
        for row in (rows["beam 8"], best)
    ]
    return Basis({"problems": many}, compared=compared)
