"""llama-tiny-heads: Medusa heads, the feature drafter of EAGLE and the adapter of Kangaroo on the frozen
llama-tiny, trained half on stories and tasks, half on text that the target wrote itself at temperature 1.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from decoders.heads import DraftModule, Eagle, Kangaroo, Medusa, Target, take_taps
from decoders.models import head_files
from decoders.refusal import Refusal
from explorer.corpus import ROW, Texts, mixed_rows, prepare
from explorer.training import check, loop
from explorer.training.loss_picture import loss_picture
from explorer.training.modules import held_out_losses, train_modules, work_of
from explorer.training.recipes.llama_tiny_draft_distilled import own_text

TARGET, NAME = "llama-tiny", "llama-tiny-heads"
MILLION_TOKENS = 4.0  # half an hour on two cores
OWN_SHARE = 0.15  # tokens written by the target, for each token of the budget
OWN_BATCH = 64  # of which this many are written at a time
BATCH, TASKS, EXIT = 16, 0.25, 3
VALIDATION_ROWS = 96
FIRST = 40  # batches that `ready` is shown


def rows_after(
    seen: int, texts: Texts, own: np.ndarray, batch: int = BATCH, length: int = ROW
) -> torch.Tensor:
    """The batch [batch, length] after `seen` tokens: alternately of the corpus, and of the target's own text
    [R, ROW].
    """
    if seen // (batch * length) % 2 == 0:
        return mixed_rows(texts.stories, texts.tokenizer, seen // 2, batch, TASKS)[0][:, :length]
    pick = np.random.default_rng(seen).integers(len(own), size=batch)
    return torch.from_numpy(own[pick].astype(np.int64))[:, :length]


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
    taps = (take_taps(model, rows.to(model.device), layers) for rows in held.split(BATCH))
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
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def train(
    args: Namespace,
    name: str,
    million_tokens: float,
    made: Callable[[Target], Sequence[DraftModule]],
    ready: Callable[[dict[str, DraftModule], torch.Tensor], None] = lambda modules, rows: None,
    batch: int = BATCH,
    length: int = ROW,
    validation_rows: int = VALIDATION_ROWS,
    eight_bits: bool = False,
) -> None:
    """Trains the modules that `made` returns for the shared parts of the target, on batches of `batch` rows
    of `length` tokens, and ships them. `ready` is called before with the modules, by kind, and the first
    tokens [N] that they will read. eight_bits: see `head_files.save`.
    """
    texts = prepare(args.corpus, args.work)
    model = loop.trained(TARGET).eval().requires_grad_(False)
    source = loop.MODELS / TARGET
    check_tokenizer(texts, source)
    work = work_of(args.work, name, TARGET)
    budget = args.million_tokens or million_tokens
    own = own_text(model, texts, args.work, OWN_SHARE * budget * 1e6, OWN_BATCH)
    torch.manual_seed(0)
    modules = {module.kind: module.to(model.device) for module in made(Target.of(model))}
    held = texts.held[:validation_rows, :length]

    def feed(seen: int) -> torch.Tensor:
        return rows_after(seen, texts, own, batch, length)

    ready(modules, torch.cat([feed(at * batch * length).flatten() for at in range(FIRST)]))
    curve = train_modules(modules, model, feed, held, budget, work)
    folder = loop.MODELS / name
    head_files.save(folder, modules, TARGET, source, texts.tokenizer, eight_bits=eight_bits)
    write_training(folder, modules, model, texts.held[: 8 * validation_rows, :length], curve)
    check.write(folder)


def main(args: Namespace) -> None:
    """Trains and ships all three."""

    def made(shared: Target) -> list[DraftModule]:
        return [Medusa(shared), Eagle(shared), Kangaroo(shared, EXIT)]

    train(args, NAME, MILLION_TOKENS, made, eight_bits=True)
