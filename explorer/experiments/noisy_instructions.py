"""Does it help to subtract a noisy instruction?

Instructive decoding subtracts part of what the model predicts under a noisy instruction: a wrong one, none at
all, its own words shortened and shuffled, or random words. The instruction is on a line of its own, a form
that the models were not trained on; for Python it is the comment that says what a function does. How many
answers are right with each noise, and how much more likely does the real instruction make a token than the
noise? won: right where plain decoding is wrong; lost: the reverse; p: of a sign test on these.
"""

from dataclasses import replace

from decoders.trace.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.evidence import answer_text, gain
from explorer.experiments.reading import count, percent, rows_of
from explorer.experiments.spread import over
from explorer.experiments.statistics import sign_test
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from visualizers.analysis.calibration import wilson

PAPERS = ("distort-distract-decode",)
COUNT, TOKENS, EPSILON = 12, 24, 0.3
ASKED = ("copy", "reverse", "sort", "last", "upper", "opposite", "translate", "python")
PLAIN = "plain decoding"
NOISES = (PLAIN, "opposite", "none", "shortened and shuffled", "random words")


def phrased(problem: Problem) -> Problem:
    """The same problem with its instruction on a line of its own."""
    return replace(problem, prompt=problem.prompt.replace(": ", ":\n", 1))


def answers(models: Models, noise: str, task: str) -> tuple[list[bool], list[Trace]]:
    """Which problems of a task are solved with a kind of noise, and the traces."""
    given = {"epsilon": 0.0} if noise == PLAIN else {"epsilon": EPSILON, "noise": noise}
    asked = [phrased(problem) for problem in problems(task, COUNT, HELD_OUT_SEED)]
    traces = over(models, decoded, [("instructive", p.prompt, TOKENS) for p in asked], **given)
    checks = zip(asked, traces, strict=True)
    return [TASKS[task].check(p, answer_text(trace)).right for p, trace in checks], traces


def row(noise: str, answered: dict[str, tuple[list[bool], list[Trace]]], plain: list[bool]) -> list[Cell]:
    """The results of one kind of noise on all tasks; `plain`: where plain decoding was right."""
    right = [one for rights, _ in answered.values() for one in rights]
    traces = [trace for _, some in answered.values() for trace in some]
    won = sum(a and not b for a, b in zip(right, plain, strict=True))
    lost = sum(b and not a for a, b in zip(right, plain, strict=True))
    by_task = [sum(rights) / len(rights) for rights, _ in answered.values()]
    share = [sum(right) / len(right), *wilson(sum(right), len(right))]
    return [noise, *by_task, *share, gain(traces), won, lost, sign_test(won, lost)]


def run(models: Models) -> Result:
    """One row per kind of noise; a chart of right answers over the distance of the two distributions."""
    rows: list[list[Cell]] = []
    plain: list[bool] = []
    columns = ["noise", *ASKED, "right", "from", "to", "gained bits", "won", "lost", "p"]
    at = {column: i for i, column in enumerate(columns)}
    for noise in progress.each(NOISES):
        by_task = {task: answers(models, noise, task) for task in progress.each(ASKED)}
        plain = plain or [one for rights, _ in by_task.values() for one in rights]
        rows.append(row(noise, by_task, plain))
    own, best = rows[0], max(rows[1:], key=lambda r: r[at["right"]])
    says = [
        f"Without subtracting anything, {own[at['right']]:.0%} of the answers are right "
        f"({own[at['from']]:.0%} to {own[at['to']]:.0%}).",
        f"Of the noises, “{best[0]}” does best: {best[at['right']]:.0%}, with {best[at['won']]} won and "
        f"{best[at['lost']]} lost (p {best[at['p']]:.2f}).",
    ]
    points = sorted([r[at["gained bits"]], r[at["right"]]] for r in rows[1:])
    title = "Right answers by how far the noise is off"
    return Result(columns, rows, says, Chart(title, "gained bits", "right", [Line("noises", points)]))


def finding(answer: dict) -> str:
    """The best noise against no noise."""
    plain, *noisy = rows_of(answer)
    best = max(noisy, key=lambda row: row["right"])
    if best["right"] <= plain["right"]:
        return (
            f"None of {count(len(noisy), 'noisy instruction')} helps: without subtracting one, "
            f"{percent(plain['right'])} of the answers are right, and with the best one "
            f"{percent(best['right'])}."
        )
    return (
        f"Subtracting what the model says under the noisy instruction “{best['noise']}” helps: "
        f"{percent(best['right'])} of the answers are right instead of {percent(plain['right'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems, each answered under every noise."""
    best = max(rows_of(answer)[1:], key=lambda row: row["right"])
    many = COUNT * len(ASKED)
    compared = by_wins("right answers, best noise against none", best["won"], best["lost"], many)
    return Basis({"problems": many}, compared=[compared])
