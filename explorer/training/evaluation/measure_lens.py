"""How far each depth of llama-tiny is from its final prediction, read with and without the tuned lens."""

from pathlib import Path

import torch

from decoders.heads import Target, TunedLens, take_taps
from decoders.lenses.frame import level_names
from explorer.corpus import pack, read_stories, rows_of
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with
from explorer.training.recipes.llama_tiny_lens import BATCH

FILE, HELD_ROWS = "levels.json", 16


@torch.no_grad()
def by_level(lens: TunedLens, model: torch.nn.Module, held: torch.Tensor) -> list[float]:
    """KL(p || q_l) in nats of each level below the last on held-out rows [R, T], [L]."""
    every, sums = torch.arange(held.shape[1], device=model.device), torch.zeros(len(lens.reads))
    for rows in held.to(model.device).split(BATCH):
        sums += lens.losses(take_taps(model, rows, lens.reads), every).cpu() * len(rows)
    return (sums / len(held)).tolist()


def measure(folder: Path, corpus: Path) -> Findings:
    """The mean KL of each level, tuned and not, on held-out stories."""
    target = model_with(folder, "float32")
    held = rows_of(pack(read_stories(corpus)[1], target.tokenizer))[:HELD_ROWS]
    lenses = {"tuned": target.heads["lens"], "logit": TunedLens(Target.of(target.model))}
    kls = {name: by_level(lens, target.model, held) for name, lens in lenses.items()}
    levels = level_names(len(kls["tuned"]))
    rows = {level: {name: round(kls[name][at], 4) for name in kls} for at, level in enumerate(levels[:-1])}
    return Findings({FILE: rows})
