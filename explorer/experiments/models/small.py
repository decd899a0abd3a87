"""Small models that experiments train themselves, on text that the target wrote, so that nothing has to be
downloaded.
"""

import math
from collections.abc import Callable, Iterable

import torch

from decoders.models.own_text import texts_of_model
from decoders.trace.token_text import visible
from explorer.experiments import Models, progress

WRITERS = 64  # texts sampled at a time
WARM_UP = 0.05  # share of the steps in which the learning rate rises


def own_text(models: Models, rows: int, length: int = 128, seed: int = 0) -> torch.Tensor:
    """Texts [rows, length] that the target samples at temperature 1 after an end-of-text token, as if a new
    story began; it continues after further ends.
    """
    target = models["target"]
    begin = min(target.eos, default=0)
    torch.manual_seed(seed)
    batches = []
    for first in progress.each(range(0, rows, WRITERS)):
        batches.append(texts_of_model(target.model, begin, min(WRITERS, rows - first), length).cpu())
    return torch.cat(batches)


def words(models: Models, tokens: torch.Tensor) -> list[str]:
    """The text of some of the target's tokens."""
    return [visible(models["target"].bytes_of(token)) for token in tokens.tolist()]


def next_loss(logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Mean loss in nats of the next tokens of rows [B, T]. logits [B, T, V]."""
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), rows[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model: torch.nn.Module, rows: torch.Tensor) -> float:
    """Mean loss in nats per token of rows [B, T] that a language model has not read."""
    return float(next_loss(model(rows.to(model.device)).logits.float().cpu(), rows))


def fit(
    parameters: Iterable[torch.nn.Parameter],
    loss: Callable[[torch.Tensor], torch.Tensor],
    rows: torch.Tensor,
    steps: int,
    batch: int = 16,
    rate: float = 2e-3,
    seed: int = 0,
) -> list[float]:
    """Minimises `loss(some rows [batch, T])` over `steps` random batches from rows [R, T]: AdamW, a short
    warm-up of its rate, then half a cosine. Returns the losses on the way.
    """
    learned = [p for p in parameters if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, rate, betas=(0.9, 0.95), weight_decay=0.01)
    rises = max(1, round(WARM_UP * steps))

    def share(step: int) -> float:
        left = (step - rises) / max(1, steps - rises)
        return (step + 1) / rises if step < rises else 0.5 * (1 + math.cos(math.pi * left))

    schedule, generator = (
        torch.optim.lr_scheduler.LambdaLR(optimizer, share),
        torch.Generator().manual_seed(seed),
    )
    losses = []
    for _ in progress.each(range(steps)):
        pick = torch.randint(len(rows), (batch,), generator=generator)
        value = loss(rows[pick])
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(value.item())
    return losses
