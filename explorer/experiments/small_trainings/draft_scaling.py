"""What do a draft's training and size buy?

Scylla finds that the number of tokens that a draft earns per round grows linearly with the logarithm of the
number of tokens that it was trained on, and with that of its size, and that the best number of candidates
shrinks as the batch grows. Here drafts of one to four layers on the target's own states, with EAGLE's form
and loss, read text that the target wrote; all sizes read the same batches at a constant learning rate, so
that one training run gives a draft for each amount of text. Accepted: the mean number of consecutive best
guesses, at most five, that greedy decoding of held-out prompts accepts. The scaling laws are fitted without
the last amount of text, which they then predict. The study's drafts have read a thousand times as much.
Batches: tokens per second are the tokens per forward expected of the largest draft's tree of best ranks,
times the batch size, divided by the time that a forward over that many tokens takes on this machine.
"""

import math
import statistics
import time
from collections.abc import Callable

import torch

from decoders.heads import Target, take_taps
from decoders.speculative.drafters.rank_trees import expected_tokens, topology_from_rank_accuracy
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import prompts
from explorer.experiments.basis import Basis
from explorer.experiments.models.guesses import along_texts, written
from explorer.experiments.models.small import own_text
from explorer.experiments.models.stacked_drafter import StackedDrafter
from explorer.experiments.reading import rows_of, two

PAPERS = ("scaling-laws-for-speculative-decoding",)
LAYERS, INTERMEDIATE, DEPTH = (1, 2, 3, 4), 256, 5
LENGTH, BATCH, RATE, WARM_UP = 128, 4, 2e-3, 10
# Training tokens after which drafts are measured; the last amount is held out.
READ = (8192, 16384, 32768, 65536, 131072)
KINDS, EACH, NEW_TOKENS = ("stories", "word problems", "records"), 6, 48
BATCHES, BUDGETS = (1, 4, 16, 64), (1, 4, 16, 64)  # requests in a batch; drafted nodes per request
COLUMNS = ["layers", "parameters", "tokens read", "accepted", "by the law"]


def line(xs: list[float], ys: list[float]) -> tuple[float, float, float]:
    """(a, b, R squared) of the least-squares line y = a log10 x + b."""
    logs = [math.log10(x) for x in xs]
    a, b = statistics.linear_regression(logs, ys)
    mean = statistics.fmean(ys)
    total = sum((y - mean) ** 2 for y in ys)
    missed = sum((y - a * x - b) ** 2 for x, y in zip(logs, ys, strict=True))
    return a, b, 1 - missed / total if total else 1.0


def best_budget(batch: int, tokens: dict[int, float], seconds: Callable[[int], float]) -> tuple[int, float]:
    """The number of drafted nodes per request at which a batch writes the most tokens per second, and that
    speed. tokens: number of nodes -> expected tokens per forward; seconds: the time of a forward over a
    number of tokens.
    """
    speeds = {budget: batch * brings / seconds(batch * budget) for budget, brings in tokens.items()}
    best = max(speeds, key=speeds.get)
    return best, speeds[best]


def train(models: Models, drafts: dict[str, StackedDrafter], rows: torch.Tensor) -> list[dict[str, dict]]:
    """Lets all drafts read `rows` once, in place; returns the result of `along_texts` for each draft after
    each amount.
    """
    target = models["target"]
    asked = [target.encode(text) for kind in KINDS for text in prompts(kind, EACH)]
    texts, reports = written(target, asked, NEW_TOKENS), []
    opts = {
        name: torch.optim.AdamW(d.parameters(), RATE, betas=(0.9, 0.95), weight_decay=0.01)
        for name, d in drafts.items()
    }
    guesses = {name: draft.along for name, draft in drafts.items()}
    for step, some in enumerate(progress.each(list(rows.split(BATCH))), start=1):
        taps = take_taps(target.model, some.to(target.model.device))
        for name, draft in drafts.items():
            opts[name].param_groups[0]["lr"] = RATE * min(1.0, step / WARM_UP)
            opts[name].zero_grad()
            draft.train().loss(taps).backward()
            torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
            opts[name].step()
            draft.eval()
        if step * BATCH * LENGTH in READ:
            reports.append(along_texts(target, guesses, texts, list(map(len, asked)), (), DEPTH))
    return reports


@torch.inference_mode()
def forward_seconds(models: Models, sizes: list[int]) -> dict[int, float]:
    """Number of tokens -> seconds of a target forward over them: medians of five, measured in turn."""
    model, spent = models["target"].model, {size: [] for size in sizes}
    for _ in range(6):
        for size in sizes:
            ids = torch.ones(math.ceil(size / 256), min(size, 256), dtype=torch.long, device=model.device)
            began = time.perf_counter()
            model(input_ids=ids)
            spent[size].append(time.perf_counter() - began)
    return {size: statistics.median(took[1:]) for size, took in spent.items()}


def run(models: Models) -> Result:
    """One row per size and amount of text, then the batches."""
    shared, drafts = Target.of(models["target"].model), {}
    for layers in LAYERS:
        torch.manual_seed(0)
        drafts[f"{layers}"] = StackedDrafter(shared, layers, INTERMEDIATE).to(shared.embed.device)
    with progress.part(0.25):
        rows = own_text(models, READ[-1] // LENGTH, LENGTH)
    reports = train(models, drafts, rows)
    table = []
    for name, draft in drafts.items():
        counts = [after[name]["accepted"] for after in reports]
        a, b, _ = line(list(READ[:-1]), counts[:-1])
        size = sum(p.numel() for p in draft.parameters())
        table += [
            [int(name), size, read, count, a * math.log10(read) + b]
            for read, count in zip(READ, counts, strict=True)
        ]
    accuracy = reports[-1][str(LAYERS[-1])]["accuracy"]
    says, picture = batches(models, accuracy)
    lines = [Line(f"{n} layers", [[r[2], r[3]] for r in table if r[0] == n]) for n in LAYERS]
    chart = Chart("Accepted tokens by what was read", "tokens read", "accepted tokens", lines, log=True)
    sizes = Chart(
        "Accepted tokens by size",
        "parameters",
        "accepted tokens",
        [Line(f"{read:,} read", [[r[1], r[3]] for r in table if r[2] == read]) for read in READ[2:]],
        log=True,
    )
    return Result(COLUMNS, table, [*scaling_laws(table), *says], chart, pictures=[sizes, picture])


def signed(value: float) -> str:
    """`+ 0.50` or `− 0.50`."""
    return f"{'+' if value >= 0 else '−'} {two(abs(value))}"


def scaling_laws(table: list[list]) -> list[str]:
    """The fitted lines in words, and their errors on the held-out points."""
    says = []
    for layers in LAYERS:
        own = [row for row in table if row[0] == layers]
        a, b, r2 = line([row[2] for row in own[:-1]], [row[3] for row in own[:-1]])
        says.append(
            f"{layers} {'layer' if layers == 1 else 'layers'}: accepted = {two(a)} log10(tokens read) "
            f"{signed(b)}, R² {r2:.3f}; at the held-out {own[-1][2]:,} tokens it predicts {two(own[-1][4])}, "
            f"and {two(own[-1][3])} were measured."
        )
    last = [row for row in table if row[2] == READ[-1]]
    a, b, r2 = line([row[1] for row in last[:-1]], [row[3] for row in last[:-1]])
    guess = a * math.log10(last[-1][1]) + b
    says.append(
        f"By size, at {READ[-1]:,} tokens: accepted = {two(a)} log10(parameters) {signed(b)}, R² {r2:.3f}; "
        f"for the held-out largest draft it predicts {two(guess)}, and {two(last[-1][3])} were measured."
    )
    return says


def batches(models: Models, accuracy: list[list[float]]) -> tuple[list[str], Chart]:
    """The best number of candidates for each batch size on this machine, in words and as curves."""
    trees = {m: topology_from_rank_accuracy(accuracy, m) for m in BUDGETS}
    tokens = {m: expected_tokens(accuracy, tree) for m, tree in trees.items()}
    took = forward_seconds(models, sorted({b * m for b in BATCHES for m in BUDGETS}))
    best = {b: best_budget(b, tokens, took.__getitem__) for b in BATCHES}
    words = ", ".join(f"{m} for a batch of {b}" for b, (m, _) in best.items())
    lines = [Line(f"{m} nodes", [[b, b * tokens[m] / took[b * m]] for b in BATCHES]) for m in BUDGETS]
    title = "Tokens per second by batch and candidates, calculated from measured forwards"
    says = [f"The best number of drafted nodes per request on this machine: {words}."]
    return says, Chart(title, "requests in a batch", "tokens/s", lines, log=True)


def finding(answer: dict) -> str:
    """The gain from ten times the text and from four times the layers."""
    rows = rows_of(answer)
    small, large = rows[0]["layers"], rows[-1]["layers"]
    one = [row for row in rows if row["layers"] == small]
    a, _, _ = line([row["tokens read"] for row in one], [row["accepted"] for row in one])
    top = [row["accepted"] for row in rows if row["tokens read"] == rows[-1]["tokens read"]]
    return (
        f"Ten times the text gives a draft of {small} layer {two(a)} more accepted tokens per round, while "
        f"{large} layers in place of {small} change the accepted tokens from {two(top[0])} to {two(top[-1])}."
    )


STANDS = Basis(
    {"prompts": EACH * len(KINDS)}, trained=1, unfinished="more is accepted with every doubling of the text"
)
