"""Does it matter how weights are lost while a model learns?

Small language models learn text sampled from the target, equally long; in the end a part of the weights of
their linear layers is zero. The smallest ones go step by step from a quarter to three quarters of the
training (The Journey Matters, 2025), or n of every m stay: one cut at the end, SR-STE, where gradients pass
straight through a mask from the start, or progressive gradient flow (2024), where masked weights fade by a
factor that falls to 0. active: the weights that take part in a forward, averaged over the training. The
journey's law is that a sparse model ends where a dense one with as many weights as are active on average
ends; dense models with fewer heads' channels and neurons show where that is. Each is trained with several
seeds; the dense one with the first of them also twice as long, beside its loss after the usual steps. The
learning rate is the best of three for the dense model. The 127 most frequent tokens are distinguished.
"""

import copy
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
    removed,
    unmask,
)
from explorer.experiments.reading import Row, moved, rows_of, two
from explorer.experiments.without_decoding.information_surplus import by_frequency

PAPERS = ("progressive-gradient-flow-for-robust-n",)  # not the journey: its law holds here only roughly
FREQUENT, WIDTH, LAYERS, HEADS, INNER = 127, 32, 2, 4, 64
TEXTS, HELD_OUT, LENGTH = 8000, 256, 32
STEPS, BATCH, SEEDS = 1000, 64, 3
RATE = 1e-2  # of .005, .01 and .02 the best for the dense model, with 511 tokens distinguished
DENSE, TWICE = "dense", "dense, twice as long"
GRADUAL, CUT, STRAIGHT = "step by step", "one cut", "SR-STE"
FADING = "fading"
PARTS = (0.125, 0.25, 0.5, 1.0)  # of the weights of the dense models
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
        fixed = self.recipe in (CUT, STRAIGHT, FADING)
        return f"{self.n} of {self.m}" if fixed else f"{self.left:.4g}"


STEPWISE, FLOW, SR_STE, AFTER = Way(GRADUAL, 2, 8), Way(FADING, 1, 8), Way(STRAIGHT, 1, 8), Way(CUT, 1, 8)
SPARSE = (STEPWISE, SR_STE, FLOW)


def masked(way: Way, weight: torch.Tensor) -> Masked:
    """The mask of a layer's weight with which a recipe begins."""
    if way.recipe == GRADUAL:
        return Masked(Gradual(weight))
    return Masked(n_of_m(way.n, way.m), straight=way.recipe == STRAIGHT)


def change(way: Way, masks: list[Masked], step: int) -> float:
    """Changes the masks before a step; returns the share of the weights that takes part from then on."""
    if way.recipe == GRADUAL:
        share = removed(step, STEPS, 1 - way.left)
        for one in masks:
            one.kept.share = share
        return 1 - share
    factor = fading(step, STEPS // 4, 3 * STEPS // 4) if way.recipe == FADING else 0.0
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
    masks = mask(model, lambda at, weight: masked(way, weight))
    active = []
    fitted(model, rows, seed, lambda step: active.append(change(way, masks, step)), STEPS)
    change(way, masks, STEPS)
    unmask(model)
    return model, fmean(active)


def cut(model: LlamaForCausalLM, way: Way) -> LlamaForCausalLM:
    """A dense model of which only n of every m weights stay."""
    model = copy.deepcopy(model)
    mask(model, lambda at, weight: masked(way, weight))
    unmask(model)
    return model


def at_share(curve: dict[float, float], share: float) -> float:
    """The loss of a dense model with a share of the weights, between those of `curve`, by its logarithm."""
    return float(interp(log(share), log(list(curve)), list(curve.values())))


def run(models: Models) -> Result:
    """A row for each dense size, then one for each recipe and share."""
    with progress.part(0.2):
        wrote = own_text(models, TEXTS // 2 + HELD_OUT, 2 * LENGTH).reshape(-1, LENGTH)
    texts = by_frequency(wrote, wrote, FREQUENT)
    rows, held = texts[: -2 * HELD_OUT], texts[-2 * HELD_OUT :]
    seeds = range(SEEDS)
    with progress.part(len(PARTS) / (len(PARTS) + len(SPARSE) + 1)):
        models_of = [
            {part: dense(part, rows, seed, STEPS) for part in progress.each(PARTS)}
            for seed in progress.each(seeds)
        ]
    curves = [{part: held_out_loss(model, held) for part, model in each.items()} for each in models_of]
    table: list[list[Cell]] = [
        [DENSE, f"{part:.4g}", part, fmean(curve[part] for curve in curves), None, None] for part in PARTS
    ]
    ends = {AFTER: [(cut(each[1.0], AFTER), 1.0) for each in models_of]}
    for way in progress.each(SPARSE, until=0.85):
        ends[way] = [sparse(way, rows, seed) for seed in progress.each(seeds)]
    losses = {way: [held_out_loss(model, held) for model, _ in each] for way, each in ends.items()}
    active = {way: each[0][1] for way, each in ends.items()}
    for way in ends:
        places = [fmean(at_share(curve, share) for curve in curves) for share in (active[way], way.left)]
        table.append([way.recipe, way.name, active[way], fmean(losses[way]), *places])
    longer = held_out_loss(dense(1.0, rows, 0, 2 * STEPS), held)
    table.append([TWICE, "1", 1.0, longer, curves[0][1.0], curves[0][1.0]])
    compared = differences(losses, active, curves)
    return Result(COLUMNS, table, conclusions(table), chart(table), compared=compared)


def differences(
    losses: dict[Way, list[float]], active: dict[Way, float], curves: list[dict[float, float]]
) -> list[Compared]:
    """What the finding claims, seed by seed."""
    gains = [a - b for a, b in zip(losses[FLOW], losses[SR_STE], strict=True)]
    compared = [by_pairs("fading against SR-STE", gains)]
    for share, name in ((active[STEPWISE], "average"), (STEPWISE.left, "final")):
        stepwise = zip(losses[STEPWISE], curves, strict=True)
        gaps = [loss - at_share(curve, share) for loss, curve in stepwise]
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
    *rows, (_, _, _, longer, short, _) = table
    says = [f"The dense model ends at {short:.3f} nats per token, after twice the steps at {longer:.3f}."]
    for row in rows:
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
    fades, straight = rows[FADING, "1 of 8"], rows[STRAIGHT, "1 of 8"]
    return (
        f"Pruned step by step to a quarter, a small model ends at {two(steps['loss'])} nats, "
        f"a dense one of its average size at {two(steps['dense loss at active'])}, of its final size at "
        f"{two(steps['dense loss at left'])}; with 1 of 8 left, fading ends at {two(fades['loss'])}, SR-STE "
        f"at {two(straight['loss'])}."
    )


def stands(answer: dict) -> Basis:
    """Every model is trained anew with each seed."""
    twice = rows_of(answer)[-1]
    short, longer = twice["dense loss at active"], twice["loss"]
    falls = f"the dense model's loss {moved(short, longer)} nats with twice the steps"
    unfinished = falls if short - longer > 0.05 else ""
    return Basis({"held-out texts": 2 * HELD_OUT}, SEEDS, unfinished, compared=as_measured(answer))
