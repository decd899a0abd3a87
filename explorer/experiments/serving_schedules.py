"""Does a long prompt make others wait?

Requests that share a model either read prompts or decode. SARATHI cuts prompts into chunks and batches
decodes with them; prepacking puts short prompts into one row of a batch instead of padding them. Here
requests with prompts of different lengths arrive at the target on this machine one after another (a seeded
Poisson process, counted in iterations) and are decoded greedily. Batches that are padded or packed run as
rows of transformers' own forward, the other schedules as one forward of this app's engine per iteration, so
times can be compared only within each of these two kinds. Memory is never short, and no request ends early.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

import torch

from decoders.scheduling.chunked_prefill import chunked_prefill
from decoders.scheduling.prefill_first import prefill_first, request_level
from decoders.scheduling.prepacking import cells, packed, padded, serve_batches
from decoders.scheduling.requests import Iteration, Request, served, waits
from explorer.experiments import Models, Result, progress
from explorer.experiments.asked import KINDS, prompts
from explorer.experiments.basis import Basis
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import rows_of

PAPERS = ("sarathi", "prepacking")
LENGTHS, TOKENS = (24, 12, 200, 8, 40, 160, 16, 9), 20  # tokens of the prompts; tokens written after each
ROWS, GAP, SEED = 4, 4.0, 0  # maximum concurrent requests, mean iterations between arrivals
BUDGETS, REPEATS, DARKEST = (16, 32, 64), 5, 3
COLUMNS = [
    "schedule",
    "iterations",
    "cells computed",
    "tokens per iteration at most",
    "equal to alone",
    "first token, mean ms",
    "first token, worst ms",
    "longest gap between tokens, ms",
]
PADDED, PACKED, BATCHES, FIRST = "batches, padded", "batches, packed", "batches, engine", "prefill first"


@dataclass
class Served:
    """The results of a schedule: its iterations, with the median of their times, and the texts."""

    ran: list[Iteration]
    requests: list[Request]

    def times(self) -> tuple[list[float], list[float]]:
        """(milliseconds to each request's first token, each request's longest gap between tokens)."""
        both = [waits(self.ran, i, one.arrives) for i, one in enumerate(self.requests)]
        return [1000 * first for first, _ in both], [1000 * max(gaps, default=0.0) for _, gaps in both]


def asked(models: Models) -> list[Request]:
    """The requests: pieces of the tasks' prompts, cut to LENGTHS."""
    ids = models["target"].encode(" ".join(text for kind in KINDS for text in prompts(kind, 8)))
    dice, arrives, begin, made = torch.Generator().manual_seed(SEED), 0.0, 0, []
    for length in LENGTHS:
        made.append(Request(ids[begin : begin + length], TOKENS, int(arrives)))
        arrives += float(torch.empty(1).exponential_(1 / GAP, generator=dice))
        begin += length
    return made


def ways(models: Models) -> dict[str, Callable[[list[Request]], list[Iteration]]]:
    """The schedules by name, each bound to its executor."""
    engine, model = models["target"].engine, models["target"].model
    schedules = {
        BATCHES: partial(request_level, rows=ROWS),
        FIRST: partial(prefill_first, rows=ROWS),
        **{f"chunks, budget {c}": partial(chunked_prefill, budget=c, rows=ROWS) for c in BUDGETS},
    }
    return {
        PADDED: lambda requests: serve_batches(model, requests, ROWS, pack=False),
        PACKED: lambda requests: serve_batches(model, requests, ROWS, pack=True),
        **{name: partial(served, engine, schedule=one) for name, one in schedules.items()},
    }


def repeated(models: Models) -> dict[str, Served]:
    """Runs every schedule REPEATS times, in turn, after one warm-up run; the plans are always the same."""
    times: dict[str, list[list[float]]] = {}
    last: dict[str, Served] = {}
    for _ in progress.each(range(REPEATS + 1), until=0.9):
        for name, way in progress.each(ways(models).items()):
            requests = asked(models)
            last[name] = Served(way(requests), requests)
            times.setdefault(name, []).append([one.seconds for one in last[name].ran])
    for name, one in last.items():
        for at, iteration in enumerate(one.ran):
            iteration.seconds = median(run[at] for run in times[name][1:])
    return last


@torch.inference_mode()
def alone(models: Models) -> list[list[int]]:
    """Each request's text by full forwards of transformers, without other requests."""
    model, texts = models["target"].model, []
    for one in progress.each(asked(models)):
        text = list(one.prompt)
        for _ in range(one.wants):
            text.append(int(model(torch.tensor([text], device=model.device)).logits[0, -1].argmax()))
        texts.append(text[len(one.prompt) :])
    return texts


def timeline(name: str, one: Served) -> Heat:
    """A heat map of requests over iterations: the darker a cell, the more tokens were read."""
    ran, last = {it.at: it for it in one.ran}, one.ran[-1].at
    each, strips = [str(at) for at in range(last + 1)], []
    for i, length in enumerate(LENGTHS):
        read = [ran[at].tokens.get(i, 0) if at in ran else 0 for at in range(last + 1)]
        strips.append(Strip(f"prompt of {length}", each, [[float(min(count, DARKEST)) for count in read]]))
    says = (
        f"tokens of the request that an iteration reads, {DARKEST} and more alike; empty: it waits or is done"
    )
    return Heat(f"Who runs when: {name}", says, ["iterations"], strips, 0.0, float(DARKEST))


def run(models: Models) -> Result:
    """One row per schedule."""
    runs, table = repeated(models), []
    wanted = alone(models)
    for name, one in runs.items():
        firsts, gaps = one.times()
        same = sum(r.written == text for r, text in zip(one.requests, wanted, strict=True))
        largest, computed = max(sum(it.tokens.values()) for it in one.ran), sum(it.cells for it in one.ran)
        texts = f"{same} of {len(wanted)}"
        table.append([name, len(one.ran), computed, largest, texts, fmean(firsts), max(firsts), max(gaps)])
    rows = {row[0]: row for row in table}
    chunked = [rows[f"chunks, budget {c}"] for c in BUDGETS]
    best = min(chunked, key=lambda row: row[-1])
    says = [
        f"With prompts first, an iteration reads up to {rows[FIRST][3]} tokens, and the longest gap between "
        f"two tokens of a text is {rows[FIRST][-1]:.1f} ms; it is {best[-1]:.1f} ms with {best[0]}.",
        f"The first token then comes after {best[5]:.0f} ms on average, against {rows[FIRST][5]:.0f} ms with "
        f"prompts first and {rows[BATCHES][5]:.0f} ms where nobody joins a batch that runs.",
        f"Packing computes {rows[PACKED][2]:,} cells where padding computes {rows[PADDED][2]:,}, decodes "
        f"included; had all {len(LENGTHS)} prompts come together, their one prefill would be "
        f"{cells(packed(LENGTHS), LENGTHS):,} cells instead of {cells(padded(LENGTHS), LENGTHS):,}.",
        f"{sum(r.written == t for s in runs.values() for r, t in zip(s.requests, wanted, strict=True))} of "
        f"{len(runs) * len(wanted)} texts are those of the request alone. Times are medians of "
        f"{REPEATS} runs of each iteration, schedules in turn.",
    ]
    return Result(COLUMNS, table, says, pictures=[timeline(name, runs[name]) for name in (FIRST, best[0])])


def finding(answer: dict) -> str:
    """Gaps with and without chunks, cells with and without packing."""
    rows = {row["schedule"]: row for row in rows_of(answer)}
    gap = COLUMNS[-1]
    best = min((row for name, row in rows.items() if name.startswith("chunks")), key=lambda row: row[gap])
    first = COLUMNS[5]
    return (
        f"The longest gap between two tokens is {rows[FIRST][gap]:.0f} ms where prompts go first and "
        f"{best[gap]:.0f} ms with {best['schedule']}; the first token takes {rows[FIRST][first]:.0f} ms and "
        f"{best[first]:.0f} ms, and packing computes {rows[PACKED]['cells computed']:,} cells where padding "
        f"computes {rows[PADDED]['cells computed']:,}."
    )


STANDS = Basis({"requests": len(LENGTHS), "measurements of each": REPEATS})
