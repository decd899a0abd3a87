"""Trains drafters on the frozen target, half on the corpus, half on text that it wrote itself, and ships
them: the rows of rows/draft_heads.py.
"""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from decoders.heads import DraftModule, Target, take_taps
from decoders.models import head_files
from decoders.models.catalog import TARGET
from decoders.models.head_kinds import KINDS
from decoders.refusal import Refusal
from explorer.corpus import Texts, mixed_rows, prepare
from explorer.training import check, loop
from explorer.training.loss_picture import loss_picture
from explorer.training.modules import held_out_losses, train_modules, work_of
from explorer.training.own_text import own_text
from explorer.training.rows.draft_heads import DraftHeads

OWN_SHARE = 0.15  # tokens written by the target, for each token of the budget
TASKS = 0.25  # share of the corpus' rows that are problems
FIRST = 40  # batches by which a drafter is prepared
READ = 16  # rows that are read at a time when losses are measured


def rows_after(seen: int, texts: Texts, own: np.ndarray, batch: int, length: int) -> torch.Tensor:
    """The batch [batch, length] after `seen` tokens: alternately of the corpus, and of the target's own text
    [R, ROW].
    """
    if seen // (batch * length) % 2 == 0:
        return mixed_rows(texts.stories, texts.tokenizer, seen // 2, batch, TASKS)[0][:, :length]
    pick = np.random.default_rng(seen).integers(len(own), size=batch)
    return torch.from_numpy(own[pick].astype(np.int64))[:, :length]


def choose_words(drafter: DraftModule, rows: torch.Tensor) -> None:
    """A draft with a vocabulary of its own keeps the most frequent tokens of its training text, as many as it
    has room for; ties to the smaller id.
    """
    counts = torch.bincount(rows.flatten(), minlength=len(drafter.target.head))
    kept = counts.argsort(descending=True, stable=True)[: len(drafter.d2t)]
    print(f"the draft's vocabulary covers {counts[kept].sum() / counts.sum():.3f} of the tokens", flush=True)
    drafter.keep(kept.sort().values.to(drafter.d2t.device))


def choose_unit(drafter: DraftModule, rows: torch.Tensor) -> None:
    """Clover-2 reads the target's states in units of their root mean square."""
    taps = take_taps(drafter.target.model, rows[:8], drafter.reads)
    drafter.unit.copy_(taps.states[drafter.target.layers].square().mean().sqrt())


# what is read off the first rows [N, T] of training, by kind of drafter
PREPARED: dict[str, Callable[[DraftModule, torch.Tensor], None]] = {
    "eagle3": choose_words,
    "peagle": choose_words,
    "clover2": choose_unit,
}


def check_tokenizer(texts: Texts, source: Path) -> None:
    """Raises Refusal with one sentence unless the texts use the target's tokenizer."""
    if texts.tokenizer.get_vocab() != PreTrainedTokenizerFast.from_pretrained(source).get_vocab():
        raise Refusal(
            f"The tokenizer of the work folder is not that of {TARGET}; put the target's tokenizer files in "
            "its folder 'tokenizer'."
        )


def write_training(
    folder: Path,
    modules: dict[str, DraftModule],
    model: torch.nn.Module,
    held: torch.Tensor,
    curve: loop.Curve,
) -> None:
    """Writes the modules' loss curves with pictures, and facts: sizes, losses of all held-out rows."""
    layers = tuple({layer for module in modules.values() for layer in module.reads})
    taps = (take_taps(model, rows.to(model.device), layers) for rows in held.split(READ))
    losses = held_out_losses(modules, taps)
    columns = [f"{name}_{part}_loss" for part in ("training", "held_out") for name in modules]
    saved = loop.save_curve(folder, ["million_tokens", *columns], curve)
    for at, kind in enumerate(modules, 1):
        own = [(row[0], row[at], row[at + len(modules)]) for row in saved]
        (folder / f"loss-{kind}.svg").write_text(loss_picture(own, f"{folder.name}: loss of {kind}"), "utf-8")
    parts = {kind: sum(p.numel() for p in module.parameters()) for kind, module in modules.items()}
    facts = {
        "parameters": sum(parts.values()),
        "million_tokens": round(curve[-1][0], 2),
        "parameters_of": parts,
        "held_out_losses": {name: round(loss, 4) for name, loss in zip(modules, losses, strict=True)},
    }
    loop.write_json(folder / "facts.json", facts)


def ship(
    name: str,
    modules: dict[str, DraftModule],
    model: torch.nn.Module,
    target: str,
    tokenizer: PreTrainedTokenizerFast,
    held: torch.Tensor,
    curve: loop.Curve,
    eight_bits: bool = False,
) -> None:
    """Writes drafters of the shipped `target` to their folder, with curves and facts. eight_bits: see
    `head_files.save`.
    """
    folder = loop.MODELS / name
    head_files.save(folder, modules, target, loop.MODELS / target, tokenizer, eight_bits=eight_bits)
    write_training(folder, modules, model, held, curve)
    check.write(folder)


def train_row(row: DraftHeads, args: Namespace) -> None:
    """Trains and ships the drafters of one folder."""
    texts = prepare(args.corpus, args.work)
    model = loop.trained(TARGET).eval().requires_grad_(False)
    check_tokenizer(texts, loop.MODELS / TARGET)
    work, budget = work_of(args.work, row.name, TARGET), args.million_tokens or row.million_tokens
    own = own_text(model, texts, args.work, OWN_SHARE * budget * 1e6)
    torch.manual_seed(0)
    shared = Target.of(model)
    modules = {
        kind: KINDS[kind].head(shared, **settings).to(model.device) for kind, settings in row.heads.items()
    }
    held = texts.held[:, : row.length]

    def feed(seen: int) -> torch.Tensor:
        return rows_after(seen, texts, own, row.batch, row.length)

    for kind, drafter in modules.items():
        if kind in PREPARED:
            first = torch.cat([feed(at * row.batch * row.length) for at in range(FIRST)])
            PREPARED[kind](drafter, first)
    curve = train_modules(modules, model, feed, held[: row.validation_rows], budget, work)
    measured = held[: 8 * row.validation_rows]
    ship(row.name, modules, model, TARGET, texts.tokenizer, measured, curve, row.eight_bits)
