"""Does feedback help more than another try?

A generator and a checker exchange messages in rounds, as flows. On list programs and Python functions the
checker runs the tests that are in the prompt; on chains of sums it checks every step. A model this small
cannot reason about what it is told, so feedback acts only through the next prompt: the first test that failed
is put last, or the chain continues after its last right step. The baseline samples again from the same
prompt, with the same seeds and the same checker. Both keep the best answer so far and stop once everything
passes. right: hidden tests too; ahead: the lead over the baseline, with the standard error over problems;
tokens: read by the target in all calls.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from statistics import fmean

from decoders.trace.trace import Trace
from explorer.experiments import DrawnMessage, Models, Result
from explorer.experiments.asked import packed, problems_of
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.curves import CurvesBy
from explorer.experiments.message_flows import (
    Ask,
    Content,
    Flow,
    Log,
    Message,
    checker,
    circular,
    decoding,
    ran,
)
from explorer.experiments.reading import Row, grouped, percent, rows_of, rows_with
from explorer.experiments.statistics import lead
from explorer.experiments.sweep import Setting, Sweep, concluded, swept
from explorer.tasks import TASKS, Problem
from explorer.tasks.own_tests import pass_rate
from explorer.tasks.problem import lines
from visualizers.analysis.calibration import wilson

PAPERS = ("flows",)
COUNT, ROUNDS = 60, (1, 2, 4, 8)
AGAIN, FEEDBACK, GENERATOR = "drawn again", "with feedback", "generator"
WIDE = 100  # maximum characters of a message in the picture
LENGTHS = {"list_program": 24, "python": 40, "chain": 60}  # task -> maximum tokens of an answer
# (original prompt, last prompt, text written after it) -> its messages
Critic = Callable[[str, str, str], Content]
Heard = tuple[Problem, list[Message]]  # a problem, and all messages about it
Outcome = tuple[bool, float]  # of one problem after some rounds: (right, tokens read)


def tested(asked: str, prompt: str, text: str) -> Content:
    """Runs the tests of a prompt; the next prompt puts the first failed one last."""
    head, tests, tail = parted(asked)
    failed = [test for test in tests if not pass_rate(head + test + tail, text)]
    order = [test for test in tests if test not in failed[:1]] + failed[:1]
    passed = 1 - len(failed) / len(tests)
    return {"whole": text, "passed": passed, "prompt": head + "".join(order) + tail}


def parted(prompt: str) -> tuple[str, list[str], str]:
    """(text before the tests of a prompt, the tests, text after them), each in whole lines."""
    rows = prompt.splitlines(keepends=True)
    marks = [" == " in row if prompt.startswith("#") else "->" in row for row in rows]
    first, last = marks.index(True), len(rows) - marks[::-1].index(True)
    return "".join(rows[:first]), rows[first:last], "".join(rows[last:])


def validated(problem: Problem) -> Critic:
    """Checks the steps of a chain; the next prompt contains those before the first wrong one."""

    def check(asked: str, prompt: str, text: str) -> Content:
        whole = prompt.removeprefix(asked) + text
        grade = TASKS[problem.task].check(problem, whole)
        kept = [line for line, _ in takewhile(lambda step: step[1], grade.steps)]
        share = 1.0 if grade.right else len(kept) / (1 + len(lines(problem.answer)))
        return {"whole": whole, "passed": share, "prompt": asked + "".join(f"{line}\n" for line in kept)}

    return check


def keeper() -> Flow:
    """Remembers the best answer so far; the first one in a tie."""

    def work(content: Content, state: Content, ask: Ask) -> Content:
        if content["passed"] > state.get("best_passed", -1.0):
            state |= {"best": content["whole"], "best_passed": content["passed"]}
        return dict(state)

    return Flow("keeper", ("whole", "passed"), ("best", "best_passed"), work)


def wired(models: Models, problem: Problem, way: str, kept: list[Trace] | None = None) -> Flow:
    """Generator, checker and keeper in a circle; `kept`: the list that collects the generator's traces."""
    check = validated(problem) if problem.task == "chain" else tested

    def speak(asked: str, prompt: str, text: str) -> Content:
        verdict = check(asked, prompt, text)
        return verdict if way == FEEDBACK else verdict | {"prompt": asked}

    generator = decoding(GENERATOR, models, "sample", LENGTHS[problem.task], kept=kept)
    critic = checker("checker", ("asked", "prompt", "text"), ("whole", "passed", "prompt"), speak)
    parts = (generator, critic, keeper())
    return circular(way, parts, max(ROUNDS), lambda state: state["best_passed"] == 1.0)


def logged(models: Models, problem: Problem, way: str, kept: list[Trace] | None = None) -> list[Message]:
    """All messages about one problem."""
    log = Log()
    ran(wired(models, problem, way, kept), {"asked": problem.prompt, "prompt": problem.prompt}, log)
    return log.messages


def heard(models: Models, way: str, problem: Problem) -> Heard:
    """One problem, and all messages about it."""
    return problem, logged(models, problem, way)


def solved(problem: Problem, messages: list[Message]) -> list[Outcome]:
    """The outcomes of one problem after each of ROUNDS."""
    costs = [m.content["cost"] for m in messages if m.sender == GENERATOR]
    kept = [m.content["best"] for m in messages if m.sender == "keeper"]
    right = [TASKS[problem.task].check(problem, best).right for best in kept]
    return [(right[min(r, len(right)) - 1], sum(costs[:r])) for r in ROUNDS]


def measures(runs: list[Heard], again: list[Heard]) -> list[Row]:
    """A row for each number of rounds."""
    own, rival = (list(zip(*(solved(*one) for one in some), strict=True)) for some in (runs, again))
    return [after(*both) for both in zip(ROUNDS, own, rival, strict=True)]


def after(rounds: int, own: Sequence[Outcome], rival: Sequence[Outcome]) -> Row:
    """The results of a way after some rounds, their cost, and the lead."""
    right = [one for one, _ in own]
    low, high = wilson(sum(right), len(right))
    share = {"rounds": rounds, "right": fmean(right), "from": low, "to": high}
    ahead, error = lead(right, [one for one, _ in rival])
    return share | {"tokens": fmean(cost for _, cost in own), "ahead": ahead, "± error": error}


def picture(models: Models, runs: list[Heard]) -> tuple[list[DrawnMessage], list[str]]:
    """The shortest run in which everything passed, but not at once, and the generator's calls in it. It is
    run again, which changes nothing but the times: the traces of all runs would take too much memory.
    """
    runs = [one for one in runs if 1 < one[1][-1].content["rounds"] < max(ROUNDS)]
    if not runs:
        return [], []
    problem, _ = min(runs, key=lambda one: len(one[1]))
    traces: list[Trace] = []
    messages = logged(models, problem, FEEDBACK, traces)
    drawn, calls = [], 0
    for m in messages:
        calls += m.receiver == GENERATOR
        call = calls if GENERATOR in (m.sender, m.receiver) else None
        drawn.append(DrawnMessage(m.sender, m.receiver, in_short(m.content), round(m.time, 3), call))
    return drawn, list(map(packed, traces))


def in_short(content: Content) -> str:
    """The new content of a message, numbers first, shortened."""
    new = [(key, value) for key, value in content.items() if key not in ("asked", "best")]
    words = [f"{key} {value:g}" for key, value in new if not isinstance(value, str)]
    words += [f"{key} {value.strip()}" for key, value in new if isinstance(value, str)]
    text = "; ".join(words).replace("\n", "↵")
    return text[:WIDE] + "…" * (len(text) > WIDE)


def verdict(again: Row, feedback: Row) -> str:
    """Whether feedback was ahead by two standard errors after all rounds."""
    ahead, error = feedback["ahead"], feedback["± error"]
    clear = (
        "clearly ahead" if ahead > 2 * error else "clearly behind" if ahead < -2 * error else "no clear lead"
    )
    return (
        f"{feedback['task']}, {feedback['rounds']} rounds: {feedback['right']:.0%} right with feedback "
        f"({feedback['tokens']:,.0f} tokens per problem), {again['right']:.0%} when drawn again "
        f"({again['tokens']:,.0f}); {ahead:+.3f} ± {error:.3f}, {clear}."
    )


def says(rows: list[Row]) -> list[str]:
    """Each task after all rounds."""
    last = [row for row in rows if row["rounds"] == ROUNDS[-1]]
    return [verdict(*both) for both in grouped(last, "task").values()]


SWEEP = Sweep(
    names=("task", "way"),
    settings=lambda models: [
        Setting((task, way), way, {}, problems_of([task], COUNT))
        for task in LENGTHS
        for way in (AGAIN, FEEDBACK)
    ],
    decode=heard,
    measures=measures,
    within="task",
    says=says,
    chart=CurvesBy(
        "Problems that are solved",
        "rounds",
        "share right",
        lambda row: f"{row['task']}, {row['way']}",
        ("rounds", "right", "from", "to"),
    ),
    sampled={"problems of each task": COUNT},
)


def run(models: Models) -> Result:
    """The sweep, with the messages of one run."""
    made = swept(models, SWEEP)
    fed = [some for one, some in zip(made.settings, made.outcomes, strict=True) if one.strategy == FEEDBACK]
    messages, calls = picture(models, [one for some in fed for one in some])
    return concluded(made, SWEEP, messages=messages, calls=calls)


def finding(answer: dict) -> str:
    """Chains of sums and list programs after all rounds."""
    # The last row of a task and way has the most rounds.
    last = {(row["task"], row["way"]): row for row in rows_of(answer)}
    (fed, drawn), (fed_programs, drawn_programs) = (
        [percent(last[task, way]["right"]) for way in (FEEDBACK, AGAIN)] for task in ("chain", "list_program")
    )
    return (
        f"After {last['chain', AGAIN]['rounds']} rounds, feedback solves {fed} of the chains of sums and "
        f"drawing again solves {drawn}; of the list programs they solve {fed_programs} and {drawn_programs}."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task."""
    last = {row["task"]: row for row in rows_with(answer, "way", FEEDBACK)}
    compared = [
        by_error(f"solved {what}, feedback against drawing again", last[task]["ahead"], last[task]["± error"])
        for task, what in (("chain", "chains of sums"), ("list_program", "list programs"))
    ]
    return Basis(SWEEP.sampled, compared=compared)
