"""Does it help to subtract a noisy instruction?

Instructive decoding subtracts part of what the model predicts under a noisy instruction: a wrong one, none at
all, its own words shortened and shuffled, or random words. The instruction is on a line of its own, a form
that the models were not trained on; for Python it is the comment that says what a function does. How many
answers are right with each noise, and how much more likely does the real instruction make a token than the
noise? won: right where plain decoding is wrong; lost: the reverse; p: of a sign test on these.
"""

from dataclasses import dataclass, replace

from explorer.experiments import Models
from explorer.experiments.asked import decoded, problems_of
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.curves import Curves
from explorer.experiments.measures import right_by_task, right_with_interval, won_and_lost
from explorer.experiments.reading import Row, count, highest, percent, rows_of
from explorer.experiments.sweep import Setting, Sweep
from explorer.experiments.sweeps.evidence import answer_text, gained_bits, gains
from explorer.tasks import TASKS, Problem

PAPERS = ("distort-distract-decode",)
COUNT, TOKENS, EPSILON = 12, 24, 0.3
ASKED = ("copy", "reverse", "sort", "last", "upper", "opposite", "translate", "python")
PLAIN = "plain decoding"
NOISES = {PLAIN: {"epsilon": 0.0}} | {
    noise: {"epsilon": EPSILON, "noise": noise}
    for noise in ("opposite", "none", "shortened and shuffled", "random words")
}


def phrased(problem: Problem) -> Problem:
    """The same problem with its instruction on a line of its own."""
    return replace(problem, prompt=problem.prompt.replace(": ", ":\n", 1))


@dataclass(frozen=True)
class Answered:
    """An answer to a problem of a task, and the nats by which the instruction made each token more likely."""

    task: str
    right: bool
    gains: list[float]


def answered(models: Models, strategy: str, problem: Problem, **parameters: float | str) -> Answered:
    """One problem, with its instruction on a line of its own."""
    asked = phrased(problem)
    trace = decoded(models, strategy, asked.prompt, TOKENS, **parameters)
    right = TASKS[asked.task].check(asked, answer_text(trace)).right
    return Answered(asked.task, right, gains(trace))


def says(rows: list[Row]) -> list[str]:
    """Plain decoding, and the best noise."""
    own, best = rows[0], highest(rows[1:], "right")
    return [
        f"Without subtracting anything, {own['right']:.0%} of the answers are right "
        f"({own['from']:.0%} to {own['to']:.0%}).",
        f"Of the noises, “{best['noise']}” does best: {best['right']:.0%}, with {best['won']} won and "
        f"{best['lost']} lost (p {best['p']:.2f}).",
    ]


SWEEP = Sweep(
    names=("noise",),
    settings=lambda models: [
        Setting((noise,), "instructive", given, problems_of(ASKED, COUNT)) for noise, given in NOISES.items()
    ],
    decode=answered,
    measures=lambda answers, plain: {
        **right_by_task(answers, ASKED),
        **right_with_interval(answers),
        "gained bits": gained_bits(one.gains for one in answers),
        **won_and_lost(answers, plain),
    },
    says=says,
    chart=Curves(
        "Right answers by how far the noise is off",
        "gained bits",
        "right",
        {"noises": ("gained bits", "right")},
        where=lambda row: row["noise"] != PLAIN,
    ),
    sampled={"problems": COUNT * len(ASKED)},
)


def finding(answer: dict) -> str:
    """The best noise against no noise."""
    plain, *noisy = rows_of(answer)
    best = highest(noisy, "right")
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
    best = highest(rows_of(answer)[1:], "right")
    wins = best["won"], best["lost"], COUNT * len(ASKED)
    return Basis(SWEEP.sampled, compared=[by_wins("right answers, best noise against none", *wins)])
