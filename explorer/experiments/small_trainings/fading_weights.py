"""Does a weight that fades learn more than one that is cut?

Small language models learn text sampled from the target; in the end only n of every m weights of their linear
layers may be other than zero. one cut: trained dense, pruned at the end. SR-STE: pruned from the start, while
gradients pass straight through. fading, linear and exponential (MdGf): trained dense for a quarter of the
steps; then masked weights are multiplied by a factor that falls to 0 at three quarters, so that a weaker and
weaker gradient still reaches them. stricter (SdGf): the pattern goes from m - 1 of m to n of m in steps. All
read the same batches. The study trains encoders, translation and vision models; its gains grow with sparsity.
"""

from collections.abc import Callable

import torch
from transformers import LlamaForCausalLM

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.small import fit, next_loss, own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import (
    Masked,
    fading,
    mask,
    n_of_m,
    structure,
    unmask,
)
from explorer.experiments.reading import rows_of, two
from explorer.experiments.without_decoding.information_surplus import by_frequency

PAPERS = ()  # none: unlike in the paper, fading does not beat SR-STE here
PATTERNS = ((2, 4), (1, 8))
FREQUENT, WIDTH, LAYERS, HEADS = 1023, 96, 3, 4
TEXTS, HELD_OUT, LENGTH = 2000, 64, 64
STEPS, BATCH, RATE = 240, 8, 3e-3
Change = Callable[[Masked, int], None]  # (mask, step): changes the mask before that step


def schedule(recipe: str, n: int, m: int) -> Change:
    """How the masks of a recipe change."""
    dense, last = STEPS // 4, 3 * STEPS // 4

    def change(masked: Masked, step: int) -> None:
        if recipe.startswith("fading"):
            masked.factor = fading(step, dense, last, recipe.removeprefix("fading, "))
        elif recipe == "stricter":
            masked.kept = n_of_m(structure(step, dense, last, n, m), m)
        elif recipe == "one cut":
            masked.factor = 0.0 if step >= STEPS else 1.0

    return change


RECIPES = ("one cut", "SR-STE", "fading, linear", "fading, exponential", "stricter")


def trained(rows: torch.Tensor, recipe: str | None, n: int, m: int) -> LlamaForCausalLM:
    """A model trained by a recipe, with n of m weights at the end; dense without a recipe."""
    model = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS)
    masks = (
        mask(model, lambda at, weight: Masked(n_of_m(n, m), straight=recipe == "SR-STE")) if recipe else []
    )
    change, steps = schedule(recipe or "", n, m), iter(range(STEPS))

    def loss(some: torch.Tensor) -> torch.Tensor:
        step = next(steps)
        for masked in masks:
            change(masked, step)
        return next_loss(model(some).logits, some)

    fit(model.parameters(), loss, rows, STEPS, BATCH, RATE)
    for masked in masks:
        change(masked, STEPS)
    if masks:
        unmask(model)
    return model


@torch.no_grad()
def held_out_loss(model: LlamaForCausalLM, rows: torch.Tensor) -> float:
    """Held-out loss in nats per token."""
    return float(next_loss(model(rows).logits, rows))


def run(models: Models) -> Result:
    """One row per recipe."""
    with progress.part(0.15):
        wrote = own_text(models, TEXTS + HELD_OUT, LENGTH)
    texts = by_frequency(wrote, wrote[:-HELD_OUT], FREQUENT)
    rows, held = texts[:-HELD_OUT], texts[-HELD_OUT:]
    with progress.part(0.1):
        dense = held_out_loss(trained(rows, None, 1, 1), held)
    table: list[list[Cell]] = [["dense", *[dense] * len(PATTERNS)]]
    for recipe in progress.each(RECIPES):
        losses = [held_out_loss(trained(rows, recipe, n, m), held) for n, m in progress.each(PATTERNS)]
        table.append([recipe, *losses])
    columns = ["recipe", *(f"{n} of {m}" for n, m in PATTERNS)]
    shares = [1 - n / m for n, m in PATTERNS]
    lines = [Line(row[0], [[x, y] for x, y in zip(shares, row[1:], strict=True)]) for row in table]
    chart = Chart("Loss by the share of weights that are gone", "share of zeros", "nats per token", lines)
    return Result(columns, table, conclusions(table), chart)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions for each pattern, as sentences."""
    says = []
    rows = {row[0]: row[1:] for row in table}
    for at, (n, m) in enumerate(PATTERNS):
        order = sorted(RECIPES, key=lambda recipe: rows[recipe][at])
        listed = ", ".join(f"{recipe} {rows[recipe][at] - rows['dense'][at]:+.3f}" for recipe in order)
        says.append(f"{n} of {m}, nats above dense ({rows['dense'][at]:.3f}): {listed}.")
        gain = rows["SR-STE"][at] - min(rows[recipe][at] for recipe in RECIPES if recipe.startswith("fading"))
        verb = "is better" if gain > 0 else "is no better"
        says.append(f"At {n} of {m} the better fading {verb} than SR-STE: a difference of {gain:+.3f} nats.")
    return [one.replace(" -", " −") for one in says]


def finding(answer: dict) -> str:
    """Fading against a single cut and against SR-STE, at the sparsest pattern."""
    last = answer["columns"][-1]
    rows = {row["recipe"]: row[last] for row in rows_of(answer)}
    fades = min(rows["fading, linear"], rows["fading, exponential"])
    return (
        f"With {last} weights left, a small model whose other weights faded has a loss of {two(fades)} nats "
        f"per token, one that was cut once {two(rows['one cut'])}, one trained by SR-STE "
        f"{two(rows['SR-STE'])}, and a dense one {two(rows['dense'])}."
    )


STANDS = Basis(
    {"held-out texts": HELD_OUT},
    trained=1,
    unfinished="a sparse model has a lower loss than the dense one",
)
