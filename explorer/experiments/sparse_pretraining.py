"""Can most weights be missing while a model learns to read?

Small language models are pre-trained on text sampled from the target, with none, half, or three quarters of
the weights of their linear layers, chosen at random, fixed at zero from the start; then all weights are
freed, and the model is fine-tuned on problems (records as JSON, fact sheets). The study reports 2.5 times
fewer FLOPs of pre-training for GPT-3 XL without a significant loss. FLOPs here: 6 for each token and active
weight; nothing here runs faster, since masked weights are multiplied all the same. The learning rate is the
one of four that is best for the dense model; the sparse ones would gain from a higher one. masks kept:
fine-tuned with the masks, for comparison. none: fine-tuned from scratch. The thousand most frequent tokens
are distinguished.
"""

import copy

import torch
from transformers import LlamaForCausalLM

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.information_surplus import by_frequency
from explorer.experiments.models.small import fit, next_loss, own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import Masked, mask, random_mask, training_flops, unmask
from explorer.experiments.reading import moved, rows_with
from explorer.tasks import problems

PAPERS = ("spdf",)
SHARES = (0.0, 0.5, 0.75)
FREQUENT, WIDTH, LAYERS, HEADS = 1023, 96, 4, 4
TEXTS, HELD_OUT, LENGTH = 2000, 64, 64
TASKS = ("json", "facts")
STEPS, FINE, BATCH, RATE = 250, 60, 8, 3e-3


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


@torch.no_grad()
def loss(model: LlamaForCausalLM, rows: torch.Tensor) -> float:
    """Loss in nats per token."""
    return float(next_loss(model(rows).logits, rows))


def fixed(model: LlamaForCausalLM, share: float) -> None:
    """Fixes a share of the weights of each linear layer at zero, at random."""

    def made(at: int, weight: torch.Tensor) -> Masked:
        kept = random_mask(weight, share, at)
        return Masked(lambda _: kept)

    mask(model, made)


def run(models: Models) -> Result:
    """A row for each way to begin."""
    with progress.part(0.15):
        wrote = own_text(models, TEXTS + HELD_OUT, LENGTH)
    worked = task_rows(models, TEXTS + HELD_OUT)
    both = torch.cat([wrote, worked])
    stories, tasks = by_frequency(both, both, FREQUENT).split(len(wrote))
    table: list[list[Cell]] = []
    plain = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS)
    count = sum(p.numel() for p in plain.model.layers.parameters())
    tokens = STEPS * BATCH * LENGTH
    with progress.part(0.1):
        scratch = trained(copy.deepcopy(plain), tasks[:-HELD_OUT], FINE, 1)
    table.append(["none", None, 0.0, None, loss(scratch, tasks[-HELD_OUT:])])
    for share in progress.each(SHARES):
        model = copy.deepcopy(plain)
        fixed(model, share)
        with progress.part(0.7):
            trained(model, stories[:-HELD_OUT], STEPS, 0)
        before, flops = loss(model, stories[-HELD_OUT:]), training_flops(count, tokens, share)
        if share:
            with progress.part(0.5):
                kept = trained(copy.deepcopy(model), tasks[:-HELD_OUT], FINE, 1)
            table.append(
                ["masks kept", round(100 * share), flops / 1e9, before, loss(kept, tasks[-HELD_OUT:])]
            )
        unmask(model)
        with progress.part(1.0):
            trained(model, tasks[:-HELD_OUT], FINE, 1)
        table.append(["all free", round(100 * share), flops / 1e9, before, loss(model, tasks[-HELD_OUT:])])
    columns = ["fine-tuning", "% zeros", "GFLOPs before", "loss on stories", "loss on problems"]
    free = [row for row in table if row[0] == "all free"]
    kept = [row for row in table if row[0] == "masks kept"]
    lines = [
        Line("stories, pre-trained", [[row[1] / 100, row[3]] for row in free]),
        Line("problems, all weights free", [[row[1] / 100, row[4]] for row in free]),
        Line("problems, masks kept", [[row[1] / 100, row[4]] for row in kept]),
    ]
    chart = Chart("Sparse pre-training", "share of weights at zero", "nats per token", lines)
    return Result(columns, table, conclusions(table), chart)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    free = {row[1]: row for row in table if row[0] == "all free"}
    kept = {row[1]: row for row in table if row[0] == "masks kept"}
    dense, says = free[0], []
    for percent, masked in kept.items():
        row = free[percent]
        helps = "less" if row[4] < masked[4] else "no less"
        says.append(
            f"With {percent}% of the weights at zero pre-training takes {dense[2] / row[2]:.1f} times fewer "
            f"FLOPs and ends at {row[3]:.2f} nats, dense at {dense[3]:.2f}; fine-tuned with all weights free "
            f"the loss is {row[4]:.2f} ({dense[4]:.2f} dense), {helps} than with the masks kept "
            f"({masked[4]:.2f})."
        )
    return [*says, f"Without pre-training the fine-tuned model stands at {table[0][4]:.2f} nats."]


def finding(answer: dict) -> str:
    """The sparsest against dense, before and after fine-tuning."""
    free = {row["% zeros"]: row for row in rows_with(answer, "fine-tuning", "all free")}
    dense, sparse = free[0], free[max(free)]
    before, after = ([one[f"loss on {text}"] for one in (dense, sparse)] for text in ("stories", "problems"))
    return (
        f"If one of {round(100 / (100 - max(free)))} weights may learn in pre-training, the loss on stories "
        f"{moved(*before)} nats per token, and once all weights are free and fine-tuned, that on problems "
        f"{moved(*after)}."
    )
