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

from explorer.experiments import Chart, Line, Models, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.small import fit, held_out_loss, next_loss, own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import Masked, fading, mask, n_of_m, structure, unmask
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.sweep import Setting, Sweep
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


def trained(rows: torch.Tensor, recipe: str, n: int, m: int) -> LlamaForCausalLM:
    """A model trained by a recipe, with n of m weights at the end, or all of them if it stays dense."""
    model, masks = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS), []
    if recipe != "dense":
        masks = mask(model, lambda at, weight: Masked(n_of_m(n, m), straight=recipe == "SR-STE"))
    change, steps = schedule(recipe, n, m), iter(range(STEPS))

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


def settings(models: Models) -> list[Setting]:
    """Every recipe with every pattern, on texts that the target wrote."""
    with progress.part(0.2):
        wrote = own_text(models, TEXTS + HELD_OUT, LENGTH)
    rows, held = by_frequency(wrote, wrote[:-HELD_OUT], FREQUENT).split([TEXTS, HELD_OUT])
    given = {"rows": rows, "held": held}
    return [Setting((recipe,), recipe, given, PATTERNS) for recipe in ("dense", *RECIPES)]


def loss(models: Models, recipe: str, n: int, m: int, rows: torch.Tensor, held: torch.Tensor) -> float:
    """Held-out loss in nats per token after training by a recipe."""
    return held_out_loss(trained(rows, recipe, n, m), held)


def says(rows: list[Row]) -> list[str]:
    """Every recipe against the dense model, and fading against SR-STE, for each pattern."""
    sentences = []
    for n, m in PATTERNS:
        losses = {row["recipe"]: row[f"{n} of {m}"] for row in rows}
        dense = losses.pop("dense")
        listed = ", ".join(f"{name} {losses[name] - dense:+.3f}" for name in sorted(losses, key=losses.get))
        gain = losses["SR-STE"] - min(one for name, one in losses.items() if name.startswith("fading"))
        verb = "is better" if gain > 0 else "is no better"
        sentences += [
            f"{n} of {m}, nats above dense ({dense:.3f}): {listed}.",
            f"At {n} of {m} the better fading {verb} than SR-STE: a difference of {gain:+.3f} nats.",
        ]
    return sentences


SWEEP = Sweep(
    names=("recipe",),
    settings=settings,
    decode=loss,
    measures=lambda losses, _: {f"{n} of {m}": loss for (n, m), loss in zip(PATTERNS, losses, strict=True)},
    says=says,
    chart=lambda rows: Chart(
        "Loss by the share of weights that are gone",
        "share of zeros",
        "nats per token",
        [Line(row["recipe"], [[1 - n / m, row[f"{n} of {m}"]] for n, m in PATTERNS]) for row in rows],
    ),
    one_process=True,
)


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
    {"held-out texts": HELD_OUT}, trained=1, unfinished="a sparse model has a lower loss than the dense one"
)
