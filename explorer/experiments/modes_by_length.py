"""How likely is the most likely answer of each length?

A search that proves its result (depth first, most likely tokens first, pruning a prefix once it is no more
likely than the best complete text) looks for the most likely answer of exactly this many tokens: the text may
end there and nowhere else. Length 0 is the empty answer. proven: the problems for which the budget of
forwards was enough; otherwise the best text found counts. right: the share of these texts that solve their
problem.
"""

import math
from collections.abc import Callable
from statistics import fmean

import torch

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import text_of
from explorer.experiments.basis import Basis
from explorer.experiments.reading import count, rows_of
from explorer.tasks import HELD_OUT_SEED, TASKS, problems

PAPERS = ("making-the-most-of-your-model",)
ASKED, COUNT, LENGTHS, FORWARDS = ("count", "last", "facts"), 4, range(9), 150
Row = Callable[[tuple[int, ...]], torch.Tensor]  # a text so far -> log-probabilities [V] of the next token


def mode(row: Row, end: int, length: int, max_nodes: int) -> tuple[tuple[int, ...], float, bool]:
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


def run(models: Models) -> Result:
    """One row per task and length."""
    target, rows, lines, says = models["target"], [], [], []
    end = min(target.eos)
    for task in progress.each(ASKED):
        points: list[list[float | None]] = []
        own: list[list[Cell]] = []
        for length in progress.each(LENGTHS):
            modes = []
            for problem in progress.each(problems(task, COUNT, HELD_OUT_SEED)):
                prompt = target.encode(problem.prompt)

                @torch.inference_mode()
                def row(text: tuple[int, ...], prompt: list[int] = prompt) -> torch.Tensor:
                    ids = torch.tensor([[*prompt, *text]], device=target.model.device)
                    return target.model(ids).logits[0, -1].float().log_softmax(-1)

                text, logprob, proven = mode(row, end, length, FORWARDS)
                modes.append((logprob, proven, TASKS[task].check(problem, text_of(models, text)).right))
            known = [logprob for logprob, _, _ in modes if math.isfinite(logprob)]
            mean = fmean(known) if known else None
            own.append(
                [task, length, mean, sum(proven for _, proven, _ in modes), fmean([r for _, _, r in modes])]
            )
            points.append([float(length), mean])
        rows += own
        lines.append(Line(task, points))
        seen = [r for r in own if r[2] is not None]
        if seen:
            likeliest, empty = max(seen, key=lambda r: r[2]), seen[0]
            says.append(
                f"{task}: texts of {likeliest[1]} tokens are the most likely ({likeliest[2]:.2f} nats), and "
                f"{likeliest[4]:.0%} of them are right; the empty answer has {empty[2]:.2f} nats."
            )
    columns = ["task", "tokens", "log p of the most likely", f"proven, of {COUNT}", "right"]
    chart = Chart("The most likely answer of each length", "tokens", "nats", lines)
    return Result(columns, rows, [one.replace(" -", " −").replace("(-", "(−") for one in says], chart)


def finding(answer: dict) -> str:
    """For how many tasks the empty answer is more likely than any of the longest."""
    tasks: dict[str, list] = {}
    for row in rows_of(answer):
        tasks.setdefault(row["task"], []).append(row)
    likelihood = "log p of the most likely"
    ends = [(rows[0][likelihood], rows[-1][likelihood]) for rows in tasks.values()]
    empty = sum(long is not None and none is not None and none > long for none, long in ends)
    longest = count(answer["rows"][-1][1], "token")
    return (
        f"In {empty} of {count(len(tasks), 'task')} the empty answer is more likely than the most likely "
        f"answer of {longest} that the search could find."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task, searched without randomness."""
    return Basis({"problems of each task": COUNT})
