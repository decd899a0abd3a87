"""Does it matter how weights are lost while a model learns?

Small language models learn text sampled from the target, equally long; in the end a part of the weights of
their linear layers is zero. They are chosen at random and zero from the start (SPDF), or the smallest ones go
step by step from a quarter to three quarters of the training (The Journey Matters, 2025), or n of every m
stay: one cut at the end, SR-STE, where gradients pass straight through a mask from the start, or progressive
gradient flow (2024). There masked weights fade, by a factor that falls to 0 (MdGf), or the pattern gets
stricter in steps (SdGf). active: the weights that take part in a forward, averaged over the training. The
journey's law is that a sparse model ends where a dense one with as many weights as are active on average
ends; dense models with fewer heads' channels and neurons show where that is. Each is trained with several
seeds. The learning rate is the best of three for the dense model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import torch
from numpy import interp, log
from transformers import LlamaForCausalLM

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, Compared, as_measured, by_pairs
from explorer.experiments.models.small import fit, held_out_loss, next_loss, own_text
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.sparse_training import (
    Gradual,
    Masked,
    fading,
    mask,
    n_of_m,
    random_mask,
    removed,
    structure,
    unmask,
)
from explorer.experiments.reading import Row, moved, rows_of, two
from explorer.experiments.without_decoding.information_surplus import by_frequency

PAPERS = ()  # none: neither the gain of fading nor the law of average sizes is clear here
FREQUENT, WIDTH, LAYERS, HEADS, INNER = 511, 32, 2, 4, 64
TEXTS, HELD_OUT, LENGTH = 10_000, 256, 32
STEPS, BATCH, RATE, SEEDS = 800, 16, 1e-2, 3
DENSE, TWICE = "dense", "dense, twice as long"
RANDOM, GRADUAL, CUT, STRAIGHT = "random from the start", "step by step", "one cut", "SR-STE"
LINEAR, EXPONENTIAL, STRICTER = "fading, linear", "fading, exponential", "stricter"
PARTS = (0.125, 0.25, 0.5, 0.75, 1.0)  # of the weights of the dense models
COLUMNS = ["recipe", "left", "active", "loss", "dense loss at active", "dense loss at left"]


@dataclass(frozen=True)
class Way:
    """A recipe, and the share of the weights that is left: n of m, or any."""

    recipe: str
    n: int
    m: int

    @property
    def left(self) -> float:
        return self.n / self.m

    @property
    def name(self) -> str:
        """`2 of 4` where the weights have this pattern, else per cent."""
        fixed = self.recipe in (CUT, STRAIGHT, LINEAR, EXPONENTIAL, STRICTER)
        return f"{self.n} of {self.m}" if fixed else f"{self.left:.4g}"


SPARSE = (
    *(Way(RANDOM, n, 8) for n in (4, 2)),
    *(Way(GRADUAL, n, 8) for n in (4, 2, 1)),
    *(Way(recipe, 2, 4) for recipe in (CUT, STRAIGHT, EXPONENTIAL)),
    *(Way(recipe, 1, 8) for recipe in (CUT, STRAIGHT, LINEAR, EXPONENTIAL, STRICTER)),
)


def masked(way: Way, seed: int, at: int, weight: torch.Tensor) -> Masked:
    """The mask of a layer's weight with which a recipe begins."""
    if way.recipe == RANDOM:
        kept = random_mask(weight, 1 - way.left, 1000 * seed + at)
        return Masked(lambda _: kept)
    if way.recipe == GRADUAL:
        return Masked(Gradual(weight))
    return Masked(n_of_m(way.n, way.m), straight=way.recipe == STRAIGHT)


def change(way: Way, masks: list[Masked], step: int) -> float:
    """Changes the masks before a step; returns the share of the weights that takes part from then on."""
    dense, last = STEPS // 4, 3 * STEPS // 4
    if way.recipe == GRADUAL:
        share = removed(step, STEPS, 1 - way.left)
        for one in masks:
            one.kept.share = share
        return 1 - share
    if way.recipe == STRICTER:
        count = structure(step, dense, last, way.n, way.m)
        for one in masks:
            one.kept = n_of_m(count, way.m)
        return count / way.m
    factor = 0.0
    if way.recipe == CUT:
        factor = float(step < STEPS)
    elif way.recipe in (LINEAR, EXPONENTIAL):
        factor = fading(step, dense, last, way.recipe.removeprefix("fading, "))
    for one in masks:
        one.factor = factor
    return 1.0 if factor else way.left


def fitted(
    model: LlamaForCausalLM, rows: torch.Tensor, seed: int, before: Callable[[int], None], steps: int
) -> None:
    """Trains a model; `before` is called with the number of each step."""
    numbers = iter(range(steps))

    def loss(some: torch.Tensor) -> torch.Tensor:
        before(next(numbers))
        return next_loss(model(some).logits, some)

    fit(model.parameters(), loss, rows, steps, BATCH, RATE, seed)


def dense(part: float, rows: torch.Tensor, seed: int, steps: int) -> LlamaForCausalLM:
    """A trained dense model with this part of the weights in its linear layers."""
    heads = HEADS if part >= 0.25 else HEADS // 2
    head = max(2, round(part * WIDTH / heads))
    model = small_llama(FREQUENT + 1, WIDTH, LAYERS, heads, seed, inner=round(part * INNER), head=head)
    fitted(model, rows, seed, lambda step: None, steps)
    return model


def sparse(way: Way, rows: torch.Tensor, seed: int) -> tuple[LlamaForCausalLM, float]:
    """(a model trained by a recipe, the share of its weights that was active on average)."""
    model = small_llama(FREQUENT + 1, WIDTH, LAYERS, HEADS, seed, inner=INNER)
    masks = mask(model, lambda at, weight: masked(way, seed, at, weight))
    active = []
    fitted(model, rows, seed, lambda step: active.append(change(way, masks, step)), STEPS)
    change(way, masks, STEPS)
    unmask(model)
    return model, fmean(active)


def at_share(curve: dict[float, float], share: float) -> float:
    """The loss of a dense model with a share of the weights, between those of `curve`, by its logarithm."""
    return float(interp(log(share), log(list(curve)), list(curve.values())))


def run(models: Models) -> Result:
    """A row for each dense size, then one for each recipe and share."""
    with progress.part(0.2):
        wrote = own_text(models, TEXTS // 2 + HELD_OUT, 2 * LENGTH).reshape(-1, LENGTH)
    texts = by_frequency(wrote, wrote, FREQUENT)
    rows, held = texts[: -2 * HELD_OUT], texts[-2 * HELD_OUT :]
    with progress.part(len(PARTS) / (len(PARTS) + len(SPARSE) + 2)):
        curves = [
            {part: held_out_loss(dense(part, rows, seed, STEPS), held) for part in progress.each(PARTS)}
            for seed in progress.each(range(SEEDS))
        ]
    seeds = range(SEEDS)
    table: list[list[Cell]] = [
        [DENSE, f"{part:.4g}", part, fmean(curve[part] for curve in curves), None, None] for part in PARTS
    ]
    losses, active = {}, {}
    for way in progress.each(SPARSE, until=0.9):
        ends = [sparse(way, rows, seed) for seed in progress.each(seeds)]
        losses[way], active[way] = [held_out_loss(model, held) for model, _ in ends], ends[0][1]
        places = [fmean(at_share(curve, share) for curve in curves) for share in (active[way], way.left)]
        table.append([way.recipe, way.name, active[way], fmean(losses[way]), *places])
    longer = [held_out_loss(dense(1.0, rows, seed, 2 * STEPS), held) for seed in progress.each(seeds)]
    table.append([TWICE, "1", 1.0, fmean(longer), None, None])
    compared = differences(losses, active, curves)
    return Result(COLUMNS, table, conclusions(table), chart(table), compared=compared)


def differences(
    losses: dict[Way, list[float]], active: dict[Way, float], curves: list[dict[float, float]]
) -> list[Compared]:
    """What the finding claims, seed by seed."""
    flow, straight = Way(EXPONENTIAL, 1, 8), Way(STRAIGHT, 1, 8)
    compared = [
        by_pairs(
            "fading against SR-STE",
            [a - b for a, b in zip(losses[flow], losses[straight], strict=True)],
        )
    ]
    steps = Way(GRADUAL, 2, 8)
    for share, name in ((active[steps], "average"), (steps.left, "final")):
        ends = zip(losses[steps], curves, strict=True)
        gaps = [loss - at_share(curve, share) for loss, curve in ends]
        compared.append(by_pairs(f"against the {name} size", gaps))
    return compared


def chart(table: list[list[Cell]]) -> Chart:
    """Loss by the weights that were active on average, a line for each recipe but for one cut, which is far
    above the others.
    """
    names = dict.fromkeys(row[0] for row in table if row[0] not in (TWICE, CUT))
    lines = [Line(name, sorted([row[2], row[3]] for row in table if row[0] == name)) for name in names]
    return Chart("Loss by the weights that learned", "weights active on average", "nats per token", lines)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    dense_loss = next(row[3] for row in table if row[0] == DENSE and row[2] == 1)
    longer = table[-1][3]
    says = [
        f"The dense model ends at {dense_loss:.3f} nats per token, after twice the steps at {longer:.3f}."
    ]
    for row in table:
        if row[4] is not None:
            says.append(
                f"{row[0][0].upper()}{row[0][1:]}, {row[1]} left: {row[3]:.3f} nats; {row[2]:.0%} of the "
                f"weights were active on average, where a dense model ends at {row[4]:.3f}; one with as many "
                f"as are left at {row[5]:.3f}."
            )
    return says


def finding(answer: dict) -> str:
    """The journey's law, and fading against SR-STE at the sparsest pattern."""
    rows: dict[tuple, Row] = {(row["recipe"], row["left"]): row for row in rows_of(answer)}
    steps = rows[GRADUAL, "0.25"]
    fades, straight = rows[EXPONENTIAL, "1 of 8"], rows[STRAIGHT, "1 of 8"]
    return (
        f"Pruned step by step to a quarter, a small model ends at {two(steps['loss'])} nats, "
        f"a dense one of its average size at {two(steps['dense loss at active'])}, of its final size at "
        f"{two(steps['dense loss at left'])}; with 1 of 8 left, fading ends at {two(fades['loss'])}, SR-STE "
        f"at {two(straight['loss'])}."
    )


def stands(answer: dict) -> Basis:
    """Every model is trained anew with each seed."""
    rows = rows_of(answer)
    short = next(row["loss"] for row in rows if row["recipe"] == DENSE and row["active"] == 1)
    falls = f"the dense model's loss {moved(short, rows[-1]['loss'])} nats with twice the steps"
    unfinished = falls if short - rows[-1]["loss"] > 0.05 else ""
    return Basis({"held-out texts": 2 * HELD_OUT}, SEEDS, unfinished, compared=as_measured(answer))
