"""What do more tokens per forward break?

A masked-diffusion model may fill many masks in one forward, but each without knowing the others. First a
perfect one, whose joint distribution is known: lists are copied, shuffled, or have one item replaced at a
random place, by 1, 2 or all tokens per forward drawn at temperature 1, exactly; then every rule greedily on
that replacement. Then the masked-diffusion model that belongs to the target, on tasks with checkers, with
every rule that says which masks a forward fills. Filled: masks per forward. In theory: what a perfect model
reaches.
"""

import base64
import gzip
from dataclasses import dataclass
from statistics import fmean

from decoders.lane import Lane, Limits
from decoders.trace.events import Cell as Looked
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Models, Result, parallel_theory, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.parallel_conflict import conflict
from explorer.experiments.pictures import Chart, Heat, Line, Strip
from explorer.experiments.reading import moved, percent, rows_of
from explorer.off_loop import encoded
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from visualizers.views.diffusion.cell_states import FILLED

PAPERS = ("parallelbench",)
ORACLE = "oracle"
JOINTS = {  # list task -> its joint for n items, and the closed form of its accuracy
    "copy": (parallel_theory.copied, lambda n, k: 1.0),
    "shuffle": (parallel_theory.shuffled, parallel_theory.shuffle_accuracy),
    "replace one": (parallel_theory.one_replaced, parallel_theory.replacement_accuracy),
}
ITEMS = (4, 6)
LENGTHS = (4, 6, 8, 9, 11, 12, 16)  # of lists with one replaced item; at 10 the threshold is met exactly
CANVAS = {"upper": 32, "copy": 32, "csv": 32, "latin": 32, "json": 48}  # task -> masks
COUNT = 16  # problems of each task
PANELS = ("copy", "json")  # tasks on which order, block length and temperature are changed, too
BROKEN = "json"  # of which a wrong text is looked into
Outcome = tuple[Trace, bool]  # a decoding, and whether it is right


@dataclass(frozen=True)
class Rule:
    """Which masks a forward fills: a strategy and its parameters. Rules of a family are a curve."""

    family: str
    label: str
    strategy: str
    parameters: dict


def masked(family: str, label: str, **parameters) -> Rule:
    """A rule of masked diffusion."""
    return Rule(family, label, "masked_diffusion", parameters)


QUOTAS = [masked("quota", f"quota {k}", tokens_per_forward=k) for k in (1, 2, 4, 8, 16)]
RULES = (
    *QUOTAS,
    *(masked("threshold", f"threshold {tau}", policy="threshold", tau=tau) for tau in (0.9, 0.7, 0.5)),
    *(masked("factor", f"factor {f}", policy="factor", factor=f) for f in (0.7, 1.0, 1.9)),
    *(masked("entropy bound", f"entropy bound {g}", policy="entropy bound", gamma=g) for g in (0.1, 1.0)),
    Rule("local leap", "local leap", "local_leap", {}),
)
FOUR = {"tokens_per_forward": 4}
VARIANTS = (
    *(masked("order", f"quota 4, {o}", order=o, **FOUR) for o in ("margin", "entropy", "random")),
    masked("order", "quota 4, left to right", order="left to right", **FOUR),
    masked("block", "quota 4, blocks of 8", block_length=8, **FOUR),
    masked("temperature", "quota 4, temperature 1", temperature=1.0, **FOUR),
)


def filled(trace: Trace) -> int:
    """How many masks a lane filled, those behind the end of its text too."""
    return sum(cell.state in FILLED for step in trace.steps for cell in step.of(Looked))


def forwards(trace: Trace) -> int:
    """How many forwards it took."""
    return trace.costs.totals()["target_forwards"]


# ---- a perfect model ---------------------------------------------------------------------------------------


def drawn() -> list[list[Cell]]:
    """A row per list task, length and number of tokens per forward."""
    rows: list[list[Cell]] = []
    for task, (joint, closed) in JOINTS.items():
        for n in ITEMS:
            for k in (1, 2, n):
                right = parallel_theory.accuracy(joint(n), k)
                steps = -(-n // k)
                rows.append([ORACLE, f"{task}, {n}", f"draw {k}", right, n / steps, steps, closed(n, k)])
    return rows


def greedily(rule: Rule, n: int) -> list[Cell]:
    """The row of a rule on a list of n items, one of which, at any place, is replaced."""
    model = parallel_theory.oracle(parallel_theory.one_replaced(n))
    trace = Lane(rule.strategy, [0], {"target": model}, rule.parameters, 0, Limits(n)).run()
    right = float(sum(trace.output()) == 1)
    return [ORACLE, f"replace one, {n}", rule.label, right, n / forwards(trace), forwards(trace), 1.0]


def phases(rows: list[list[Cell]]) -> Heat:
    """Forwards of each rule and length where the text is right, nothing where it is wrong."""
    by = {(rule, task): count if right else None for _, task, rule, right, _, count, _ in rows}
    labels = list(dict.fromkeys(row[2] for row in rows))
    tasks = [f"replace one, {n}" for n in LENGTHS]
    strips = [Strip(rule, [""], [[by[rule, task]] for task in tasks]) for rule in labels]
    return Heat(
        "One item replaced: forwards of a perfect model",
        "a cell is a length and a rule; it is empty where the list comes out wrong",
        [str(n) for n in LENGTHS],
        strips,
        0.0,
        float(max(LENGTHS)),
    )


# ---- the trained model -------------------------------------------------------------------------------------


def measured(models: Models, rule: Rule, asked: list[Problem]) -> list[Outcome]:
    """How a rule does on some problems."""
    outcomes = []
    for problem in progress.each(asked):
        trace = decoded(models, rule.strategy, problem.prompt, CANVAS[problem.task], **rule.parameters)
        right = TASKS[problem.task].check(problem, text_of(models, trace.output())).right
        outcomes.append((trace, right))
    return outcomes


def summed(name: str, task: str, rule: Rule, outcomes: list[Outcome]) -> list[Cell]:
    """The row of a rule on the problems of one task. A Latin square may have several right answers, so that
    a perfect model could err as well: no number stands for it.
    """
    total = sum(forwards(trace) for trace, _ in outcomes)
    right = fmean(right for _, right in outcomes)
    per_forward = sum(filled(trace) for trace, _ in outcomes) / total
    theory = None if task == "latin" else 1.0
    return [name, task, rule.label, right, per_forward, total / len(outcomes), theory]


def curves(title: str, rows: list[list[Cell]]) -> Chart:
    """Shares that are right over filled masks per forward, a line per family of rules."""
    family = {rule.label: rule.family for rule in RULES}
    points: dict[str, list[list[float]]] = {}
    for row in rows:
        points.setdefault(family[row[2]], []).append([row[4], row[3]])
    lines = [Line(name, sorted(some)) for name, some in points.items()]
    return Chart(title, "filled per forward", "share right", lines, log=True)


def by_rule(rows: list[list[Cell]]) -> Heat:
    """Shares that are right, a row per rule and a column per task."""
    right = {(row[2], row[1]): row[3] for row in rows}
    strips = [Strip(rule.label, [""], [[right[rule.label, task]] for task in CANVAS]) for rule in RULES]
    return Heat("Right, by rule and task", "a cell is the share of problems", list(CANVAS), strips, 0.0, 1.0)


def broken(
    models: Models, asked: list[Problem], kept: dict[str, list[Outcome]]
) -> tuple[list[str], list[str]]:
    """A sentence on the first text that is right with one token per forward and wrong with four, and its
    trace with the conflicts measured; nothing if there is none, or no pair of tokens in it that do not go
    together.
    """
    one, four = (kept[f"quota {k}"] for k in (1, 4))
    for problem, (_, right), (_, still) in zip(asked, one, four, strict=True):
        if not right or still:
            continue
        given = FOUR | {"conflicts": True}
        trace = decoded(models, "masked_diffusion", problem.prompt, CANVAS[BROKEN], **given)
        pair = conflict(trace)
        if pair is None:
            continue
        words = [text_of(models, [token]) for token in pair.tokens]
        says = (
            f"The call below writes {text_of(models, trace.output())!r}, where one token per forward is "
            f"right: forward {pair.iteration} filled {words[0]!r} at position {pair.positions[0]} and "
            f"{words[1]!r} at {pair.positions[1]}, whose pointwise mutual information was {pair.pmi:.1f} "
            "nats: once one of them stood there, the model would hardly have written the other. The call's "
            "canvas grid joins such pairs and says what each forward cost."
        )
        text = encoded(trace.to_json(), finite=True).encode()
        return [says], [base64.b64encode(gzip.compress(text, mtime=0)).decode()]
    return [], []


def run(models: Models) -> Result:
    """A row per model, task and rule."""
    phase = [greedily(rule, n) for rule in progress.each(RULES, until=0.02) for n in LENGTHS]
    name = models["target"].companion("diffusion").name
    rows: list[list[Cell]] = []
    varied: list[list[Cell]] = []
    kept: dict[str, list[Outcome]] = {}
    for task in progress.each(CANVAS):
        asked = problems(task, COUNT, HELD_OUT_SEED)
        for rule in progress.each((*RULES, *(VARIANTS if task in PANELS else ()))):
            outcomes = measured(models, rule, asked)
            (varied if rule in VARIANTS else rows).append(summed(name, task, rule, outcomes))
            if task == BROKEN:
                kept[rule.label] = outcomes
    theory = drawn()
    says, calls = broken(models, problems(BROKEN, COUNT, HELD_OUT_SEED), kept)
    says = [
        f"A forward that draws all {n} items of a shuffled list costs "
        f"{parallel_theory.shuffle_correlation(n):.2f} nats (the total correlation), and the list is right "
        f"with probability {parallel_theory.shuffle_accuracy(n, n):.3f}, which is exp of minus that."
        for n in ITEMS[:1]
    ] + [verdict(phase), *says]
    panels = [curves(f"{task}, by rule", rows_of_task(rows, task)) for task in PANELS]
    pictures = [phases(phase), *panels, by_rule(rows)]
    columns = ["model", "task", "rule", "right", "filled", "forwards", "in theory"]
    chart = by_task(theory, rows)
    return Result(columns, [*theory, *rows, *varied], says, chart, calls=calls, pictures=pictures)


def verdict(phase: list[list[Cell]]) -> str:
    """Which rules go wrong on one replaced item."""
    first: dict[str, str] = {}
    for _, task, rule, right, *_ in phase:
        if not right:
            first.setdefault(rule, task.partition(", ")[2])
    safe = [rule for rule in dict.fromkeys(row[2] for row in phase) if rule not in first]
    late = [f"{rule} from {n} items on" for rule, n in first.items() if n != str(LENGTHS[0])]
    return (
        f"One replaced item is always found with {', '.join(safe)}. The other rules miss it at some length"
        + (f", {', '.join(late)}" if late else "")
        + ": that an item stays as it is has probability 1 - 1/n at every place, so confidence grows with "
        "the list, but all places together are certainly wrong."
    )


def rows_of_task(rows: list[list[Cell]], task: str) -> list[list[Cell]]:
    """The rows of one task."""
    return [row for row in rows if row[1] == task]


def by_task(theory: list[list[Cell]], rows: list[list[Cell]]) -> Chart:
    """Quotas: a line per task, and what a perfect model draws of a shuffled list."""
    quotas = {rule.label for rule in QUOTAS}
    lines = [
        Line(task, [[row[4], row[3]] for row in rows_of_task(rows, task) if row[2] in quotas])
        for task in CANVAS
    ]
    n = max(ITEMS)
    shuffles = [[row[4], row[6]] for row in theory if row[1] == f"shuffle, {n}"]
    lines.append(Line(f"in theory: {n} items shuffled", shuffles))
    return Chart("Right, by tokens per forward", "filled per forward", "share right", lines, log=True)


def finding(answer: dict) -> str:
    """What a quota of eight breaks and what it does not, and what theory says."""
    right = {(row["task"], row["rule"]): row["right"] for row in rows_of(answer)}
    changes = [
        f"{moved(right[task, 'quota 1'], right[task, 'quota 8'], percent)} on {task}"
        for task in ("json", "upper")
    ]
    n = min(ITEMS)
    return (
        f"With eight tokens per forward instead of one, the share of right answers {' and '.join(changes)}; "
        f"a perfect model that draws {n} shuffled items at once is right in "
        f"{percent(right[f'shuffle, {n}', f'draw {n}'])} of the cases."
    )
