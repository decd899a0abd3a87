"""The trainer that all draft modules share: a step reads one batch, asks the frozen target once, and gives
every module its own loss and its own optimisers. Knows training and `decoders.heads`, no module by name.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from training import Curve, go_on, optimizers

from decoders.heads import DraftModule, Taps, take_taps


def train_modules(
    modules: dict[str, DraftModule],
    teacher: torch.nn.Module,
    feed: Callable[[int], torch.Tensor],
    held: torch.Tensor,
    million_tokens: float,
    work: Path,
) -> Curve:
    """Trains `modules` in place towards what `teacher` says of the rows [B, T] of `feed(tokens seen)`.

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
        rows, said = feed(seen), []
        with torch.autocast(device.type, torch.bfloat16):
            read = taps(rows)
            for module in modules.values():
                value = module.loss(read)
                value.backward()
                torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                said.append(value.item())
        return rows.numel(), said

    def validate() -> list[float]:
        found = held_out_losses(modules, map(taps, held.split(16)))
        together.train()
        return found

    return go_on(together, opts, step, validate, million_tokens, work)


@torch.no_grad()
def held_out_losses(modules: dict[str, DraftModule], batches: Iterable[Taps]) -> list[float]:
    """Mean loss of each module over batches of taps."""
    sums, rows = [0.0] * len(modules), 0
    for taps in batches:
        rows += len(taps.tokens)
        for at, module in enumerate(modules.values()):
            sums[at] += module.eval().loss(taps).item() * len(taps.tokens)
    return [total / rows for total in sums]
