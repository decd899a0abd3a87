"""What the recipes of heads share. For draft modules, the trainer: a step reads one batch, runs the frozen
target once, and gives every module its own loss and its own optimisers. For heads that score, training on
rows with truths, and shipping.

A recipe's `fit` is the same for the shipped pair and for a user's own models (own_heads.py): it takes models
as `decoders.models.loading` loads them.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from decoders.heads import DraftModule, Taps, take_taps
from decoders.models import head_files
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import ROW
from explorer.training import check, loop
from explorer.training.loop import Curve, descend, half_precision, optimizers, run_steps


def frozen(name: str) -> LoadedModel:
    """A shipped model in float32 with frozen weights. ValueError if it is not trained yet."""
    model = loop.trained(name).eval().requires_grad_(False)
    return LoadedModel(name, model, PreTrainedTokenizerFast.from_pretrained(loop.MODELS / name))


def work_of(work: Path, name: str, *models: str | Path) -> Path:
    """The folder in `work` for what is trained on exactly these weights, of shipped models or of folders
    (whole paths); created if necessary.
    """
    digest = "-".join(head_files.weights_sha256(loop.MODELS / model)[:8] for model in models)
    folder = work / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@torch.no_grad()
def continued(
    model: torch.nn.Module, begun: torch.Tensor, length: int, sampled: bool = True, **options: Any
) -> torch.Tensor:
    """Rows [B, length] that `model` writes after beginnings [B, P], sampled at temperature 1 or greedily; it
    continues after ends of text. options: further ones of `generate`.
    """
    new = length - begun.shape[1]
    return model.generate(
        input_ids=begun,
        attention_mask=torch.ones_like(begun),
        max_new_tokens=new,
        min_new_tokens=new,
        eos_token_id=None,
        do_sample=sampled,
        **({"top_k": 0} if sampled else {}),
        **options,
    )


@torch.no_grad()
def write_rows(
    model: torch.nn.Module,
    begin: Callable[[int], torch.Tensor],
    path: Path,
    tokens: float,
    temperature: float = 1.0,
    row: int = ROW,
) -> np.ndarray:
    """Rows [R, row] that `model` wrote, at least `tokens` tokens, after the beginnings [B, P] that
    `begin(tokens written so far)` gives; kept in `path`, from where a run that was cut off continues.
    """
    drawn = {"temperature": temperature} if temperature else {}
    small = model.config.get_text_config().vocab_size <= np.iinfo(np.int16).max
    model.eval()
    rows = [np.load(path)] if path.exists() else []
    while (written := sum(map(len, rows))) * row < tokens:
        torch.manual_seed(written)
        begun = begin(written * row).to(model.device)
        static = {"cache_implementation": "static", "disable_compile": True}  # twice as fast: nothing grows
        wrote = continued(model, begun, row, sampled=bool(temperature), **drawn, **static)
        rows.append(wrote.cpu().numpy().astype(np.int16 if small else np.int32))
        np.save(path, np.concatenate(rows))
        print(f"{sum(map(len, rows)) * row / 1e6:.2f} M tokens of the model's own", flush=True)
    return np.concatenate(rows)


def train_modules(
    modules: dict[str, DraftModule],
    teacher: torch.nn.Module,
    feed: Callable[[int], torch.Tensor],
    held: torch.Tensor,
    million_tokens: float,
    work: Path,
) -> Curve:
    """Trains `modules` in place on the teacher's predictions for the rows [B, T] of `feed(tokens seen)`.
    held: rows [R, T] for validation. Resumes from `work/checkpoint.pt`, as all training does. A row of the
    curve: million tokens, the training loss of each module, the held-out loss of each.
    """
    together = torch.nn.ModuleDict(modules)
    device = next(teacher.parameters()).device
    layers = tuple(sorted({layer for module in modules.values() for layer in module.reads}))
    opts = [opt for module in modules.values() for opt in optimizers(module, module.rates)]

    def taps(rows: torch.Tensor) -> Taps:
        return take_taps(teacher, rows.to(device), layers)

    def step(seen: int) -> tuple[int, list[float]]:
        rows, losses = feed(seen), []
        for module in modules.values():
            module.progress = seen / (million_tokens * 1e6)
        with half_precision(device):
            read = taps(rows)
            for module in modules.values():
                losses.append(descend(module.loss(read), module))
        return rows.numel(), losses

    def validate() -> list[float]:
        losses = held_out_losses(modules, map(taps, held.split(16)))
        together.train()
        return losses

    return run_steps(together, opts, step, validate, million_tokens, work)


@torch.no_grad()
def held_out_losses(modules: dict[str, DraftModule], batches: Iterable[Taps]) -> list[float]:
    """Mean loss of each module over batches of taps."""
    sums, rows = [0.0] * len(modules), 0
    for taps in batches:
        rows += len(taps.tokens)
        for at, module in enumerate(modules.values()):
            sums[at] += module.eval().loss(taps).item() * len(taps.tokens)
    return [total / rows for total in sums]


def parted(
    tokens: torch.Tensor, every: int, truths: torch.Tensor | None = None
) -> tuple[loop.Rows, loop.Rows]:
    """Splits `tokens` [R, ...] into training rows and held-out rows (each `every`-th), with their truths [R,
    ...], or with their indices if there are none.
    """
    apart = torch.arange(len(tokens)) % every == 0
    train, held = (part.nonzero()[:, 0] for part in (~apart, apart))
    truths = torch.arange(len(tokens)) if truths is None else truths
    return (tokens[train], truths[train]), (tokens[held], truths[held])


def as_places(train: loop.Rows, held: loop.Rows) -> tuple[torch.Tensor, loop.Rows, loop.Rows]:
    """What training and held-out places read, together [N, ...], and for both their indices in it with their
    truths: so that what a head reads is not copied to where it is trained.
    """
    read, truths = (torch.cat(parts) for parts in zip(train, held, strict=True))
    first, rest = torch.arange(len(truths)).split([len(train[1]), len(held[1])])
    return read, (first, truths[first]), (rest, truths[rest])


def train_scorer(
    head: torch.nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    train: loop.Rows,
    held: loop.Rows,
    million_tokens: float,
    work: Path,
    batch: int,
    rates: tuple[float, float] = loop.RATES,
) -> Curve:
    """Trains a scoring head, in place, on `loss(rows, truths)`: `batch` rows with their truths, sampled from
    `train`; those of `held` are never fed.
    """

    def feed(seen: int) -> loop.Rows:
        generator = torch.Generator().manual_seed(seen)
        pick = torch.randint(len(train[0]), (batch,), generator=generator)
        return train[0][pick], train[1][pick]

    @torch.no_grad()
    def validate() -> float:
        head.eval()
        split = (part.to(next(head.parameters()).device).split(batch) for part in held)
        total = sum(loss(*pair).item() * len(pair[0]) for pair in zip(*split, strict=True))
        head.train()
        return total / len(held[0])

    return loop.train(head, loss, feed, validate, million_tokens, work, rates=rates)


def ship_scorer(
    name: str,
    head: torch.nn.Module,
    model: str,
    tokenizer: PreTrainedTokenizerFast,
    curve: Curve,
    unit: str,
    facts: dict,
    partner: str | None = None,
    eight_bits: bool = False,
) -> None:
    """Writes a head that reads the shipped `model` to its own folder, with loss curve, picture (in nats per
    `unit`) and facts. partner: the other shipped model that its predictions are about; eight_bits: see
    `head_files.save`.
    """
    folder = loop.MODELS / name
    other = None if partner is None else (partner, loop.MODELS / partner)
    head_files.save(
        folder, {head.kind: head}, model, loop.MODELS / model, tokenizer, partner=other, eight_bits=eight_bits
    )
    loop.write_training(folder, head, curve, unit, {"held_out_loss": round(curve[-1][2], 4), **facts})
    check.write(folder)
