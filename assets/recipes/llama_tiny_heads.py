"""llama-tiny-heads: Medusa heads, the feature drafter of EAGLE and the adapter of Kangaroo on the frozen
llama-tiny: half on stories and tasks, half on text that the target wrote itself at temperature 1.

PYTHONPATH=. python assets/recipes/llama_tiny_heads.py --corpus FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from corpus import ROW, Texts, mixed_rows, prepare
from llama_tiny_draft_distilled import own_text
from modules import held_out_losses, train_modules
from training import MODELS, arguments, save_curve

from decoders.heads import DraftModule, Eagle, Kangaroo, Medusa, Target, files, take_taps
from decoders.models import LoadedModel, folder_of, load

TARGET, NAME = "llama-tiny", "llama-tiny-heads"
MILLION_TOKENS = 4.0  # half an hour on two cores
OWN_SHARE = 0.15  # tokens written by the target, for each token of the budget
BATCH, TASKS = 16, 0.25
VALIDATION_ROWS = 96


def rows_after(seen: int, texts: Texts, own: np.ndarray) -> torch.Tensor:
    """The batch after `seen` tokens: in turn of the corpus, and of the target's own text [R, ROW]."""
    if seen // (BATCH * ROW) % 2 == 0:
        return mixed_rows(texts.stories, texts.tokenizer, seen // 2, BATCH, TASKS)[0]
    pick = np.random.default_rng(seen).integers(len(own), size=BATCH)
    return torch.from_numpy(own[pick].astype(np.int64))


def trained(target: LoadedModel, texts: Texts, args: argparse.Namespace) -> Path:
    """Trains all three on `target` and writes them to assets/models; the folder. Raises ValueError if the
    texts are cut by another tokenizer than the target's.
    """
    if texts.tokenizer.get_vocab() != target.tokenizer.get_vocab():
        raise ValueError(
            f"The tokenizer in {str(args.work)!r} is not that of {target.name}; put the target's in its "
            "folder 'tokenizer'."
        )
    source = folder_of(target.name)
    work = args.work / f"{NAME}-{files.weights_sha256(source)[:8]}"  # of just these weights
    work.mkdir(parents=True, exist_ok=True)
    budget = args.million_tokens or MILLION_TOKENS
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = target.model.to(device)
    own = own_text(model, texts, work / "own_text.npy", OWN_SHARE * budget * 1e6)
    shared = Target.of(model)
    modules = {m.kind: m.to(device) for m in (Medusa(shared), Eagle(shared), Kangaroo(shared))}
    held = texts.held[:VALIDATION_ROWS]
    curve = train_modules(modules, model, lambda seen: rows_after(seen, texts, own), held, budget, work)
    folder = MODELS / NAME
    files.save(folder, modules, target.name, source, target.tokenizer)
    columns = [f"{name}_{part}_loss" for part in ("training", "held_out") for name in modules]
    save_curve(folder, ["million_tokens", *columns], curve)
    (folder / "facts.json").write_text(
        json.dumps(facts(modules, model, texts, curve[-1][0]), indent=1) + "\n"
    )
    return folder


def facts(
    modules: dict[str, DraftModule], model: torch.nn.Module, texts: Texts, million_tokens: float
) -> dict:
    """Sizes, and the losses of all held-out rows in full precision."""
    layers = tuple({layer for module in modules.values() for layer in module.reads})
    taps = (take_taps(model, rows.to(model.device), layers) for rows in texts.held.split(16))
    losses = held_out_losses(modules, taps)
    return {
        "parameters": {name: sum(p.numel() for p in m.parameters()) for name, m in modules.items()},
        "million_tokens": round(million_tokens, 2),
        "held_out_loss": {name: round(loss, 4) for name, loss in zip(modules, losses, strict=True)},
    }


if __name__ == "__main__":
    args = arguments(__doc__)
    print(trained(load(TARGET), prepare(args.corpus, args.work), args))
