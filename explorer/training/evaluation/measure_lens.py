"""How far each depth of llama-tiny is from its final prediction, read with and without the tuned lens."""

import json
from pathlib import Path

import torch

from decoders.heads import Target, TunedLens, take_taps
from decoders.lenses.frame import level_names
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from explorer.corpus import pack, read_stories, rows_of
from explorer.training.recipes.llama_tiny_lens import BATCH, TARGET

FILE, HELD_ROWS = "levels.json", 16


@torch.no_grad()
def by_level(lens: TunedLens, model: torch.nn.Module, held: torch.Tensor) -> list[float]:
    """KL(p || q_l) in nats of each level below the last on held-out rows [R, T], [L]."""
    every, sums = torch.arange(held.shape[1], device=model.device), torch.zeros(len(lens.reads))
    for rows in held.to(model.device).split(BATCH):
        sums += lens.losses(take_taps(model, rows, lens.reads), every).cpu() * len(rows)
    return (sums / len(held)).tolist()


def measure(folder: Path, corpus: Path) -> None:
    """Writes levels.json beside the lens: the mean KL of each level, tuned and not, on held-out stories."""
    target = load(str(folder.parent / TARGET), dtype="float32")
    held = rows_of(pack(read_stories(corpus)[1], target.tokenizer))[:HELD_ROWS]
    lenses = {"tuned": load_heads(str(folder), target)["lens"], "logit": TunedLens(Target.of(target.model))}
    kls = {name: by_level(lens, target.model, held) for name, lens in lenses.items()}
    levels = level_names(len(kls["tuned"]))
    rows = {level: {name: round(kls[name][at], 4) for name in kls} for at, level in enumerate(levels[:-1])}
    (folder / FILE).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
