"""Which decoder writes the most correct programs?

Configurations of TreeCoder - decoder, constraints, population, temperature - are searched on validation
problems: small list programs, with the examples of their prompts as tests. Every decoder is tried on all of
them with its defaults; of some random configurations the better half is kept, again and again (successive
halving; the paper uses a Bayesian optimiser). The best one, and every decoder with its defaults, then solve
problems that the search has not seen. right: all examples, shown and hidden; tokens: read by the target, per
problem.
"""

import random
from dataclasses import dataclass, field
from statistics import fmean

from decoders.search.tree_search.treecoder import DECODERS
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.pictures import Board
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.spread import over
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from visualizers.analysis.calibration import wilson

PAPERS = ("treecoder",)
TASK, VALIDATION, TEST, TOKENS, SEED = "list_program", 8, 12, 24, 0
RANDOM, RUNGS = 8, (2, 4)  # random configurations; numbers of problems after which the worse half is dropped
CONSTRAINTS = ("", "syntax", "tests", "syntax, tests", "syntax, no comments, tests")
POPULATIONS, TEMPERATURES, ROLLOUTS = (1, 4, 8), (0.5, 1.0), 8
BOARD = Board("Configurations", ["decoder", "constraints", "population", "temperature", "tokens", "right"])
Setting = dict[str, str | int | float]


@dataclass
class Tried:
    """A configuration and its result on each problem: (right, tokens read)."""

    setting: Setting
    origin: str
    results: list[tuple[bool, float]] = field(default_factory=list)

    @property
    def right(self) -> float:
        return fmean(right for right, _ in self.results)

    @property
    def tokens(self) -> float:
        return fmean(tokens for _, tokens in self.results)

    def order(self) -> tuple[float, float]:
        """The sort key: more right answers first, then fewer tokens."""
        return -self.right, self.tokens


def defaults() -> list[Tried]:
    """Plain sampling and beam search, and every decoder with syntax and tests."""
    usual = {"population": 4, "temperature": 1.0}
    plain = [Tried({"decoder": d, "constraints": "", **usual}, "plain") for d in ("sampling", "beam")]
    return plain + [
        Tried({"decoder": d, "constraints": "syntax, tests", **usual}, "defaults") for d in DECODERS
    ]


def drawn(count: int) -> list[Tried]:
    """Random configurations, the same for the same seed."""
    rng, settings = random.Random(SEED), []
    for _ in range(count):
        setting = {
            "decoder": rng.choice(list(DECODERS)),
            "constraints": rng.choice(CONSTRAINTS),
            "population": rng.choice(POPULATIONS),
            "temperature": rng.choice(TEMPERATURES),
        }
        settings.append(Tried(setting, "random"))
    return settings


def answer(models: Models, setting: Setting, problem: Problem) -> tuple[bool, float]:
    """Whether a configuration solves a problem, and how many tokens the target read for it."""
    trace = decoded(models, "treecoder", problem.prompt, TOKENS, rollouts=ROLLOUTS, **setting)
    right = TASKS[TASK].check(problem, text_of(models, trace.output())).right
    return right, trace.costs.totals()["target_tokens"]


def optimised(models: Models, asked: list[Problem]) -> list[Tried]:
    """All configurations that were tried on all validation problems, best first."""
    fixed, racing = defaults(), drawn(RANDOM)
    for tried in progress.each(fixed, until=0.5):
        tried.results = over(models, answer, [(tried.setting, problem) for problem in asked])
    for until in progress.each((*RUNGS, len(asked))):
        for tried in progress.each(racing):
            todo = asked[len(tried.results) : until]
            tried.results += over(models, answer, [(tried.setting, problem) for problem in todo])
        racing = sorted(racing, key=Tried.order)
        racing = racing if until >= len(asked) else racing[: (len(racing) + 1) // 2]
    return sorted([*fixed, *racing], key=Tried.order)


def row(tried: Tried, held_out: Tried | None) -> list[Cell]:
    """The row of one configuration."""
    named = [tried.setting[key] for key in ("decoder", "constraints", "population", "temperature")]
    named[1] = named[1] or "none"
    low, high = (
        wilson(sum(r for r, _ in held_out.results), len(held_out.results)) if held_out else (None, None)
    )
    after = [held_out.right, low, high, held_out.tokens] if held_out else [None] * 4
    return [tried.origin, *named, tried.right, tried.tokens, *after]


def staircase(points: list[list[float]]) -> list[list[float]]:
    """The best accuracy at each cost or less, as points of a step curve."""
    best, steps = 0.0, []
    for cost, right in sorted(points):
        best = max(best, right)
        steps.append([cost, best])
    return steps


def run(models: Models) -> Result:
    """One row per configuration, best first; every configuration's cost and accuracy as a picture."""
    asked = problems(TASK, VALIDATION + TEST, HELD_OUT_SEED)
    with progress.part(0.5):
        tried = optimised(models, asked[:VALIDATION])
    reported = {}
    for one in progress.each(one for one in tried if one is tried[0] or one.origin != "random"):
        results = over(models, answer, [(one.setting, problem) for problem in asked[VALIDATION:]])
        reported[id(one)] = Tried(one.setting, one.origin, results)
    rows = [row(one, reported.get(id(one))) for one in tried]
    points = sorted([one.tokens, one.right] for one in tried)
    held = sorted([one.tokens, one.right] for one in reported.values())
    best = tried[0]
    plain = ", ".join(
        f"{one.setting['decoder']} {one.right:.0%} and {reported[id(one)].right:.0%}"
        for one in tried
        if one.origin == "plain"
    )
    name = ", ".join(str(value) for value in best.setting.values() if value != "")
    says = [
        f"Best on {VALIDATION} validation problems: {name} ({best.origin}), {best.right:.0%} right; no "
        f"decoder with its defaults has more. On {TEST} others: {reported[id(best)].right:.0%}.",
        f"Without constraints, on the validation problems and on the others: {plain}.",
        f"{len(DECODERS)} decoders, {len(CONSTRAINTS)} choices of constraints, {len(POPULATIONS)} sizes, "
        f"{len(TEMPERATURES)} temperatures: {RANDOM} configurations of these were drawn.",
    ]
    columns = [
        "origin",
        "decoder",
        "constraints",
        "population",
        "temperature",
        "right",
        "tokens",
        "right, test",
        "from",
        "to",
        "tokens, test",
    ]
    lines = [
        Line("validation: best for its cost", staircase(points)),
        Line("validation", points),
        Line("test", held),
        Line("test: best for its cost", staircase(held)),
    ]
    chart = Chart(
        "Right programs and what they cost", "tokens read by the target, per problem", "right", lines
    )
    return Result(columns, rows, says, chart, pictures=[BOARD])


def finding(answer: dict) -> str:
    """The best configuration and plain sampling, on problems that the search has not seen."""
    rows = rows_of(answer)
    best = rows[0]
    (plain,) = (row for row in rows if row["origin"] == "plain" and row["decoder"] == "sampling")
    return (
        f"On unseen problems the best setting of the search ({best['decoder']}, constraints: "
        f"{best['constraints']}) gets {percent(best['right, test'])} of the programs right, and plain "
        f"sampling {percent(plain['right, test'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems that the search has not seen."""
    rows = rows_of(answer)
    (plain,) = (row for row in rows if row["origin"] == "plain" and row["decoder"] == "sampling")
    shares = (row["right, test"] for row in (rows[0], plain))
    compared = by_shares("right programs, best setting against plain sampling", *shares, TEST)
    return Basis({"unseen problems": TEST}, compared=[compared])
