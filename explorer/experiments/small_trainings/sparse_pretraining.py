"""Can most weights be missing while a model learns to read?

Small language models are pre-trained on text sampled from the target, with none or three quarters of the
weights of their linear layers, chosen at random, fixed at zero from the start; then all weights are freed,
and the model is fine-tuned on problems (records as JSON, fact sheets). The study reports 2.5 times fewer
FLOPs of pre-training for GPT-3 XL without a significant loss. Pre-training is short, or five times as long,
with more than twenty tokens per weight; each with several seeds (weights, masks, order of the texts). FLOPs
here: 6 for each token and active weight; nothing here runs faster, since masked weights are multiplied all
the same. The learning rate is the best of three for the dense model. masks kept: fine-tuned with the masks,
for comparison. none: fine-tuned from scratch. The 511 most frequent tokens are distinguished. Losses are
means over the seeds.
"""

import copy
from statistics import fmean

import torch
from transformers import LlamaForCausalLM

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.models.small import fit, held_out_loss, next_loss, own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import Masked, mask, random_mask, training_flops, unmask
from explorer.experiments.reading import moved, rows_with
from explorer.experiments.without_decoding.information_surplus import by_frequency
from explorer.tasks import problems

PAPERS = ("spdf",)
SHARES = (0.0, 0.75)
FREQUENT, WIDTH, LAYERS, HEADS = 511, 32, 2, 4
TEXTS, HELD_OUT, LENGTH = 6000, 256, 64
TASKS = ("json", "facts")
LENGTHS, FINE, BATCH, SEEDS = (200, 1000), 150, 16, 3  # steps of pre-training and of fine-tuning
RATE = 1e-2  # of .003, .01 and .03 the best for the dense model after the long pre-training
COLUMNS = ["fine-tuning", "steps before", "% zeros", "GFLOPs before", "loss on stories", "loss on problems"]


def task_rows(models: Models, rows: int) -> torch.Tensor:
    """Rows [rows, LENGTH] of problems with their answers, one after the other."""
    ids: list[int] = []
    seed = 0
    while len(ids) < rows * LENGTH:
        for task in TASKS:
            for problem in problems(task, 16, seed):
                ids += models["target"].cut(f"{problem.prompt}{problem.answer}\n")
        seed += 1
    return torch.tensor(ids[: rows * LENGTH]).view(rows, LENGTH)


def trained(model: LlamaForCausalLM, rows: torch.Tensor, steps: int, seed: int) -> LlamaForCausalLM:
    """The model after this many steps on rows."""
    fit(model.parameters(), lambda some: next_loss(model(some).logits, some), rows, steps, BATCH, RATE, seed)
    return model


def fixed(model: LlamaForCausalLM, share: float, seed: int) -> None:
    """Fixes a share of the weights of each linear layer at zero, at random."""

    def made(at: int, weight: torch.Tensor) -> Masked:
        kept = random_mask(weight, share, 1000 * seed + at)
        return Masked(lambda _: kept)

    mask(model, made)


def losses(
    stories: torch.Tensor, tasks: torch.Tensor, seed: int, steps: int, share: float
) -> dict[str, tuple[float, float]]:
    """Fine-tuning -> (loss on held-out stories before it, loss on held-out problems after it), for one seed,
    one length of pre-training and one share of zeros. Without steps, only fine-tuning from scratch.
    """
    model = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS, seed)
    if share:
        fixed(model, share, seed)
    with progress.part(0.7):
        trained(model, stories[:-HELD_OUT], steps, seed)
    before, found = held_out_loss(model, stories[-HELD_OUT:]), {}
    if share:
        with progress.part(0.5):
            kept = trained(copy.deepcopy(model), tasks[:-HELD_OUT], FINE, seed)
        found["masks kept"] = before, held_out_loss(kept, tasks[-HELD_OUT:])
        unmask(model)
    with progress.part(1.0):
        trained(model, tasks[:-HELD_OUT], FINE, seed)
    return found | {"all free": (before, held_out_loss(model, tasks[-HELD_OUT:]))}


def run(models: Models) -> Result:
    """A row for each way to begin."""
    with progress.part(0.2):
        wrote = own_text(models, TEXTS + HELD_OUT, LENGTH)
    worked = task_rows(models, TEXTS + HELD_OUT)
    both = torch.cat([wrote, worked])
    stories, tasks = by_frequency(both, both, FREQUENT).split(len(wrote))
    scratch = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS)
    count = sum(p.numel() for p in scratch.model.layers.parameters())
    with progress.part(0.05):
        trained(scratch, tasks[:-HELD_OUT], FINE, 0)
    table: list[list[Cell]] = [["none", 0, None, 0.0, None, held_out_loss(scratch, tasks[-HELD_OUT:])]]
    ways = [(steps, share) for steps in LENGTHS for share in SHARES]
    found: dict[tuple[int, float], list[dict[str, tuple[float, float]]]] = {}
    for steps, share in progress.each(ways, weight=lambda way: way[0] + FINE * (2 if way[1] else 1)):
        seeds = progress.each(range(SEEDS))
        found[steps, share] = [losses(stories, tasks, seed, steps, share) for seed in seeds]
        flops = training_flops(count, steps * BATCH * LENGTH, share) / 1e9
        for name in found[steps, share][0]:
            before, after = (fmean(one[name][at] for one in found[steps, share]) for at in (0, 1))
            table.append([name, steps, round(100 * share), flops, before, after])
    compared = [
        by_pairs(
            f"loss on {text} after {steps:,} steps, sparse against dense",
            [
                sparse["all free"][at] - dense["all free"][at]
                for sparse, dense in zip(found[steps, SHARES[-1]], found[steps, SHARES[0]], strict=True)
            ],
        )
        for steps, at, text in (*((steps, 0, "stories") for steps in LENGTHS), (LENGTHS[-1], 1, "problems"))
    ]
    lines = [
        Line(
            f"{text}, {round(100 * share)}% zeros",
            [[row[1], row[at]] for row in table if row[0] == "all free" and row[2] == round(100 * share)],
        )
        for at, text in ((4, "stories, pre-trained"), (5, "problems, all weights free"))
        for share in SHARES
    ]
    chart = Chart("Sparse and dense pre-training", "steps of pre-training", "nats per token", lines)
    return Result(COLUMNS, table, conclusions(table), chart, compared=compared)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    free = {(row[1], row[2]): row for row in table if row[0] == "all free"}
    kept = {(row[1], row[2]): row for row in table if row[0] == "masks kept"}
    says = []
    for (steps, percent), masked in kept.items():
        row, dense = free[steps, percent], free[steps, 0]
        helps = "less" if row[5] < masked[5] else "no less"
        says.append(
            f"{steps:,} steps with {percent}% of the weights at zero take {dense[3] / row[3]:.1f} times "
            f"fewer FLOPs and end at {row[4]:.2f} nats, dense at {dense[4]:.2f}; fine-tuned with all weights "
            f"free the loss is {row[5]:.2f} ({dense[5]:.2f} dense), {helps} than with the masks kept "
            f"({masked[5]:.2f})."
        )
    return [*says, f"Without pre-training the fine-tuned model ends at {table[0][5]:.2f} nats."]


def finding(answer: dict) -> str:
    """Sparse against dense: before fine-tuning after either pre-training, and after it."""
    free = {
        (row["steps before"], row["% zeros"]): row for row in rows_with(answer, "fine-tuning", "all free")
    }
    share = max(percent for _, percent in free)
    (few, many), stories = sorted({steps for steps, _ in free}), "loss on stories"
    early, late = (moved(free[steps, 0][stories], free[steps, share][stories]) for steps in (few, many))
    tasks = moved(*(free[many, percent]["loss on problems"] for percent in (0, share)))
    return (
        f"If one of {round(100 / (100 - share))} weights may learn in pre-training, the loss on stories "
        f"{early} nats after {few:,} steps and {late} after {many:,}; after full fine-tuning, "
        f"that on problems {tasks}."
    )


def stands(answer: dict) -> Basis:
    """Every model is trained anew with each seed."""
    dense = [row["loss on stories"] for row in rows_with(answer, "% zeros", 0)]
    falls = (
        f"the dense model's loss on stories {moved(dense[0], dense[-1])} nats from the short to the long one"
    )
    return Basis({"held-out texts": HELD_OUT}, SEEDS, falls, compared=as_measured(answer))
