"""What breaks with more tokens per forward?

A masked-diffusion model may fill many masks in one forward, but fills each without knowing the others. First
a perfect model, whose joint distribution is known: lists are copied, shuffled, or have one item replaced at a
random place, by 1, 2 or all tokens per forward sampled at temperature 1, exactly; then the rules that need no
training, greedily on that replacement. Second, trained models with every rule that decides which masks a
forward fills, on tasks with checkers: the masked-diffusion model that belongs to the target, and for
arithmetic, which no shipped model can do, a small one that is trained here to write eight digits from 0 to 2
with a given total. LoPA, FreeDave and SSD evaluate further canvases in the same forward. Learn2PD uses a
filter that was trained for its model. In APD the draft judges; its forwards are not counted. WeDLM and Set
Block Decoding have models of their own, and fill nothing after the end of a text. These four are left out on
totals, since no such part was trained for the small model. Filled: masks per forward. In theory: what a
perfect model reaches, which may err when it samples at temperature 1.
"""

from collections.abc import Sequence
from statistics import fmean

from decoders.lane import Lane, Limits
from decoders.trace.events import Cell as Looked
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Models, Result, parallel_theory, progress
from explorer.experiments.asked import decoded, packed, text_of
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models import totals
from explorer.experiments.parallel_conflict import conflict
from explorer.experiments.parallel_rules import (
    AT_ONCE,
    FOUR,
    OTHER_MODELS,
    QUOTAS,
    RULES,
    VARIANTS,
    VERIFIED,
    Rule,
    writers,
)
from explorer.experiments.pictures import Chart, Heat, Line, Strip
from explorer.experiments.reading import moved, percent, rows_of
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
CANVAS = {  # task -> masks
    "upper": 32,
    "copy": 32,
    "csv": 32,
    "latin": 32,
    "json": 48,
    "sort": 32,
    "total": totals.DIGITS,
}
OWN = "total"  # the task for which this experiment trains a model
CHECKED = TASKS | {OWN: totals.TASK}
TRAINED = {"steps": 2400, "batch": 64}
COUNT = 16  # problems of each task
PANELS = ("copy", "json", "sort", OWN)  # tasks with curves for every rule
VARIED = ("copy", "json")  # tasks on which order, block length and temperature are changed, too
BROKEN = "json"  # the task from which a wrong text is examined
Outcome = tuple[Trace, bool]  # a decoding, and whether it is right


def filled(trace: Trace) -> int:
    """How many masks a lane filled, including those after the end of its text."""
    cells = (cell for step in trace.steps for cell in step.of(Looked))
    # Cells with a level belong to canvases that are only tried.
    return sum(cell.state in FILLED for cell in cells if cell.level is None)


def forwards(trace: Trace) -> int:
    """The number of forwards of a lane."""
    return trace.costs.totals()["target_forwards"]


# ---- a perfect model ---------------------------------------------------------------------------------------


def drawn() -> list[list[Cell]]:
    """One row per list task, length and number of tokens per forward."""
    rows: list[list[Cell]] = []
    for task, (joint, closed) in JOINTS.items():
        for n in ITEMS:
            for k in (1, 2, n):
                right = parallel_theory.accuracy(joint(n), k)
                steps = -(-n // k)
                rows.append([ORACLE, f"{task}, {n}", f"draw {k}", right, n / steps, steps, closed(n, k)])
    return rows


def greedily(rule: Rule, n: int) -> list[Cell]:
    """The row of a rule on lists of n items, one of which is replaced, at any place."""
    model = parallel_theory.oracle(parallel_theory.one_replaced(n))
    trace = Lane(rule.strategy, [0], {"target": model}, rule.parameters, 0, Limits(n)).run()
    right = float(sum(trace.output()) == 1)
    return [ORACLE, f"replace one, {n}", rule.label, right, n / forwards(trace), forwards(trace), 1.0]


def drawn_totals(per_forward: int) -> float:
    """The probability that a perfect model's digits have their total, as a mean over all totals."""
    n, highest = totals.DIGITS, totals.HIGHEST
    sums = range(n * highest + 1)
    return fmean(parallel_theory.total_accuracy(n, total, highest, per_forward) for total in sums)


def phases(rows: list[list[Cell]]) -> Heat:
    """Forwards of each rule and length where the text is right, None where it is wrong."""
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
    """The results of a rule on some problems."""
    outcomes = []
    for problem in progress.each(asked):
        trace = decoded(models, rule.strategy, problem.prompt, CANVAS[problem.task], **rule.parameters)
        right = CHECKED[problem.task].check(problem, text_of(models, trace.output())).right
        outcomes.append((trace, right))
    return outcomes


def summed(name: str, task: str, rule: Rule, outcomes: list[Outcome]) -> list[Cell]:
    """The row of a rule on the problems of one task. A Latin square may have several right answers, so a
    perfect model could err as well: it has no theoretical value, and on totals only quotas have one.
    """
    total = sum(forwards(trace) for trace, _ in outcomes)
    right = fmean(right for _, right in outcomes)
    per_forward = sum(filled(trace) for trace, _ in outcomes) / total
    theory: float | None = None if task in ("latin", OWN) else 1.0
    if task == OWN and rule in QUOTAS:
        theory = drawn_totals(rule.parameters["tokens_per_forward"])
    return [name, task, rule.label, right, per_forward, total / len(outcomes), theory]


def panels(rows: list[list[Cell]], task: str) -> list[Chart]:
    """Two charts of a task: the rules that read one canvas, and the others beside the quotas."""
    rows = rows_of_task(rows, task)
    further = (*QUOTAS, *VERIFIED, *OTHER_MODELS)
    return [
        curves(f"{task}: rules that read one canvas", rows, AT_ONCE),
        curves(f"{task}: rules with more canvases or models", rows, further),
    ]


def curves(title: str, rows: list[list[Cell]], rules: tuple[Rule, ...]) -> Chart:
    """Shares of right answers over filled masks per forward, one line per family of rules, and what a perfect
    model reaches.
    """
    family = {rule.label: rule.family for rule in rules}
    shown = [row for row in rows if row[2] in family]
    points: dict[str, list[list[float]]] = {}
    for row in shown:
        points.setdefault(family[row[2]], []).append([row[4], row[3]])
    lines = [Line(name, sorted(some)) for name, some in points.items()]
    best = ceiling(shown, "in theory: a perfect model")
    return Chart(title, "filled per forward", "share right", [*lines, best], log=True)


def ceiling(rows: list[list[Cell]], label: str) -> Line:
    """What a perfect model reaches with the quotas: 1 if there is only one right answer."""
    quotas = {rule.label for rule in QUOTAS}
    return Line(label, sorted([row[4], row[6]] for row in rows if row[2] in quotas))


def by_rule(rows: list[list[Cell]]) -> Heat:
    """Shares of right answers, one row per rule and one column per task; empty where a rule was left out."""
    right = {(row[2], row[1]): row[3] for row in rows}
    strips = [Strip(rule.label, [""], [[right.get((rule.label, task))] for task in CANVAS]) for rule in RULES]
    return Heat("Right, by rule and task", "a cell is the share of problems", list(CANVAS), strips, 0.0, 1.0)


def broken(
    models: Models, asked: list[Problem], one: list[Outcome], four: list[Outcome]
) -> tuple[list[str], list[str]]:
    """A sentence on the first text that is right with one token per forward and wrong with four, and its
    trace with the measured conflicts; None if there is none, or if no pair of its tokens conflicts.
    """
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
        return [says], [packed(trace)]
    return [], []


def run(models: Models, known: Sequence[list[Cell]] = ()) -> Result:
    """One row per model, task and rule. Rows in `known` are not measured again."""
    free = tuple(rule for rule in RULES if rule.training_free)
    with progress.part(0.1):
        phase = [greedily(rule, n) for rule in progress.each(free) for n in LENGTHS]
    plan = [
        (task, rule)
        for task in CANVAS
        for rule in (*(free if task == OWN else RULES), *(VARIANTS if task in VARIED else ()))
    ]
    found = {(row[1], row[2]): row for row in known}
    missing = [(task, rule) for task, rule in plan if (task, rule.label) not in found]
    if any(task == OWN for task, _ in missing):
        with progress.part(0.2):
            small = totals.trained(**TRAINED)
    kept: dict[str, list[Outcome]] = {}  # rule -> outcomes on BROKEN
    for task, rule in progress.each(missing, until=0.95):
        writing = {"target": small} if task == OWN else models
        asked = totals.PROBLEMS if task == OWN else problems(task, COUNT, HELD_OUT_SEED)
        outcomes = measured(writing, rule, asked)
        found[task, rule.label] = summed(writers(writing, rule), task, rule, outcomes)
        if task == BROKEN:
            kept[rule.label] = outcomes
    rows = [found[task, rule.label] for task, rule in plan if rule not in VARIANTS]
    varied = [found[task, rule.label] for task, rule in plan if rule in VARIANTS]
    theory = drawn()
    asked = problems(BROKEN, COUNT, HELD_OUT_SEED)
    two = progress.each((QUOTAS[0], QUOTAS[2]))
    both = [kept.get(rule.label) or measured(models, rule, asked) for rule in two]
    says, calls = broken(models, asked, *both)
    says = [
        f"A forward that draws all {n} items of a shuffled list costs "
        f"{parallel_theory.shuffle_correlation(n):.2f} nats (the total correlation), and the list is right "
        f"with probability {parallel_theory.shuffle_accuracy(n, n):.3f}, which is exp of minus that."
        for n in ITEMS[:1]
    ] + [verdict(phase), unchanged(rows), *says]
    pictures = [phases(phase), *(one for task in PANELS for one in panels(rows, task)), by_rule(rows)]
    columns = ["model", "task", "rule", "right", "filled", "forwards", "in theory"]
    chart = by_task(theory, rows)
    return Result(columns, [*theory, *rows, *varied], says, chart, calls=calls, pictures=pictures)


def unchanged(rows: list[list[Cell]]) -> str:
    """How fast the lossless rules are on the task from which the wrong text is taken."""
    by = {row[2]: row for row in rows_of_task(rows, BROKEN)}
    lossless = [rule.label for rule in VERIFIED if "lossless" in rule.family]
    fast = " and ".join(f"{by[name][4]:.1f} masks per forward with {name}" for name in lossless)
    return (
        f"FreeDave and SSD verify what they guess, and write the text of one mask per forward: on {BROKEN} "
        f"{fast}."
    )


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
        + ": that an item stays unchanged has probability 1 - 1/n at every place, so confidence grows with "
        "the list, but all places together are certainly wrong."
    )


def rows_of_task(rows: list[list[Cell]], task: str) -> list[list[Cell]]:
    """The rows of one task."""
    return [row for row in rows if row[1] == task]


def by_task(theory: list[list[Cell]], rows: list[list[Cell]]) -> Chart:
    """The quotas: one line per task, and what a perfect model reaches by sampling."""
    quotas = {rule.label for rule in QUOTAS}
    lines = [
        Line(task, [[row[4], row[3]] for row in rows_of_task(rows, task) if row[2] in quotas])
        for task in CANVAS
    ]
    n = max(ITEMS)
    shuffles = [[row[4], row[6]] for row in theory if row[1] == f"shuffle, {n}"]
    lines.append(Line(f"in theory: {n} items shuffled", shuffles))
    lines.append(ceiling(rows_of_task(rows, OWN), "in theory: total"))
    lines.append(ceiling(rows_of_task(rows, BROKEN), "in theory: one right answer"))
    return Chart("Right, by tokens per forward", "filled per forward", "share right", lines, log=True)


def finding(answer: dict) -> str:
    """Which tasks a quota of eight breaks and which it does not, and the theoretical value."""
    rows = {(row["task"], row["rule"]): row for row in rows_of(answer)}
    right = {place: row["right"] for place, row in rows.items()}
    upper, json, total = (
        moved(right[task, "quota 1"], right[task, "quota 8"], percent) for task in ("upper", BROKEN, OWN)
    )
    return (
        f"With eight tokens per forward instead of one, the share of right answers {upper} on upper-case "
        f"words, {json} on JSON records and {total} on digits with a given total; a perfect model that draws "
        f"them has {percent(rows[OWN, 'quota 8']['in theory'])} there."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task; the model of the given total was trained once."""
    right = {(row["task"], row["rule"]): row["right"] for row in rows_of(answer)}
    many = {BROKEN: COUNT, OWN: len(totals.PROBLEMS)}
    compared = [
        by_shares(
            f"right answers on {task}, eight tokens per forward against one",
            *(right[task, "quota 8"], right[task, "quota 1"], number),
        )
        for task, number in many.items()
    ]
    return Basis({"problems of each task": COUNT, "given totals": many[OWN]}, trained=1, compared=compared)
