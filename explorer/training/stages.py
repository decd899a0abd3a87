"""One stage of training a causal model on the shared texts, and the end of such a recipe. Knows training and
corpus.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch

from explorer.corpus import Texts, mixed_rows
from explorer.training.loop import Curve, causal_loss, device, held_out_loss, ship, train

VALIDATION_ROWS = 96


def stage(
    model: torch.nn.Module,
    texts: Texts,
    args: argparse.Namespace,
    name: str,
    million_tokens: float,
    batch: int = 16,
    tasks: float = 0.0,
    loss: Callable | None = None,
    curve: Curve = (),
) -> Curve:
    """Trains `model` for one budget and returns the whole curve. tasks: share of rows that are problems;
    loss: next-token cross-entropy by default; curve: that of earlier stages.
    """
    model.to(device()).float()
    before = curve[-1][0] if curve else 0.0
    return [
        *curve,
        *train(
            model,
            loss or causal_loss(model),
            lambda seen: mixed_rows(texts.stories, texts.tokenizer, seen, batch, tasks),
            lambda: held_out_loss(model, texts.held[:VALIDATION_ROWS]),
            args.million_tokens or million_tokens,
            args.work / name,
            before,
        ),
    ]


def finish(model: torch.nn.Module, texts: Texts, name: str, curve: Curve, **facts: Any) -> None:
    """Measures the held-out loss over all rows and ships the model."""
    loss = held_out_loss(model, texts.held)
    print(f"{name}: held-out loss {loss:.4f} nats per token", flush=True)
    facts = {"million_tokens": round(curve[-1][0], 2), "held_out_loss": round(loss, 4), **facts}
    ship(model, texts.tokenizer, name, curve, facts)
