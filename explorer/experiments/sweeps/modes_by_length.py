"""How likely is the most likely answer of each length?

A search that proves its result (depth first, most likely tokens first, pruning a prefix once it is no more
likely than the best complete text) looks for the most likely answer of exactly this many tokens: the text may
end there and nowhere else. Length 0 is the empty answer. proven: the problems for which the budget of
forwards was enough; otherwise the best text found counts. right: the share of these texts that solve their
problem.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import torch

from explorer.experiments import Models
from explorer.experiments.asked import problems_of, text_of
from explorer.experiments.curves import CurvesBy
from explorer.experiments.reading import Row, count, grouped, highest, rows_of
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import TASKS, Problem

PAPERS = ("making-the-most-of-your-model",)
ASKED, COUNT, LENGTHS, FORWARDS = ("count", "last", "facts"), 4, range(9), 150
LIKELIHOOD = "log p of the most likely"
Next = Callable[[tuple[int, ...]], torch.Tensor]  # a text so far -> log-probabilities [V] of the next token


def mode(row: Next, end: int, length: int, max_nodes: int) -> tuple[tuple[int, ...], float, bool]:
    """(tokens, log p, proven) of the most likely text of exactly `length` tokens before its `end`. At most
    `max_nodes` rows are asked for; the text is empty with -inf if none was found by then.
    """
    best: tuple[tuple[int, ...], float] = ((), -math.inf)
    waiting = [((), 0.0)]  # a stack of (text, log p)
    asked = 0
    while waiting:
        text, logprob = waiting.pop()
        if logprob <= best[1]:
            continue
        if asked == max_nodes:
            return *best, False
        after, asked = row(text), asked + 1
        if len(text) == length:
            whole = logprob + float(after[end])
            best = (text, whole) if whole > best[1] else best
            continue
        near = (after > best[1] - logprob).nonzero()[:, 0].tolist()
        children = [((*text, token), logprob + float(after[token])) for token in near if token != end]
        waiting += sorted(children, key=lambda child: child[1])
    return *best, True


@dataclass(frozen=True)
class Mode:
    """The most likely text of a length that was found."""

    logprob: float
    proven: bool
    right: bool


def of_length(models: Models, problem: Problem, length: int) -> Mode:
    """The most likely answer to a problem with exactly this many tokens."""
    target = models["target"]
    prompt = target.encode(problem.prompt)

    @torch.inference_mode()
    def row(text: tuple[int, ...]) -> torch.Tensor:
        ids = torch.tensor([[*prompt, *text]], device=target.model.device)
        return target.model(ids).logits[0, -1].float().log_softmax(-1)

    text, logprob, proven = mode(row, min(target.eos), length, FORWARDS)
    return Mode(logprob, proven, TASKS[problem.task].check(problem, text_of(models, text)).right)


def measures(modes: list[Mode], _: list[Mode]) -> Row:
    """The mean log p of the texts that were found, how many are proven, and the share that is right."""
    known = [one.logprob for one in modes if math.isfinite(one.logprob)]
    return {
        LIKELIHOOD: fmean(known) if known else None,
        f"proven, of {COUNT}": sum(one.proven for one in modes),
        "right": fmean(one.right for one in modes),
    }


def says(rows: list[Row]) -> list[str]:
    """The most likely length of each task, and the empty answer."""
    sentences = []
    for task, own in grouped(rows, "task").items():
        if seen := [row for row in own if row[LIKELIHOOD] is not None]:
            likeliest, empty = highest(seen, LIKELIHOOD), seen[0]
            sentences.append(
                f"{task}: texts of {likeliest['tokens']} tokens are the most likely "
                f"({likeliest[LIKELIHOOD]:.2f} nats), and {likeliest['right']:.0%} of them are right; the "
                f"empty answer has {empty[LIKELIHOOD]:.2f} nats."
            )
    return sentences


SWEEP = Sweep(
    names=("task", "tokens"),
    settings=lambda models: [
        Setting((task, length), parameters={"length": length}, cases=problems_of([task], COUNT))
        for task in ASKED
        for length in LENGTHS
    ],
    decode=of_length,
    measures=measures,
    within="task",
    says=says,
    chart=CurvesBy("The most likely answer of each length", "tokens", "nats", "task", ("tokens", LIKELIHOOD)),
    sampled={"problems of each task": COUNT},
)


def finding(answer: dict) -> str:
    """For how many tasks the empty answer is more likely than any of the longest."""
    tasks = grouped(rows_of(answer), "task")
    ends = [(rows[0][LIKELIHOOD], rows[-1][LIKELIHOOD]) for rows in tasks.values()]
    empty = sum(long is not None and none is not None and none > long for none, long in ends)
    longest = count(answer["rows"][-1][1], "token")
    return (
        f"In {empty} of {count(len(tasks), 'task')} the empty answer is more likely than the most likely "
        f"answer of {longest} that the search could find."
    )
