"""Trains causal models on the shared texts, stage by stage: the rows of rows/story_models.py, and stages
of other recipes.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch

from explorer.corpus import Texts, mixed_rows, prepare
from explorer.training.loop import (
    Curve,
    causal_loss,
    deepened,
    device,
    exits_loss,
    held_out_loss,
    llama,
    ship,
    train,
    trained,
)
from explorer.training.rows.story_models import StoryModel

VALIDATION_ROWS = 96
EXITS_WEIGHT = 0.3  # of the loss of an early exit


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
    ship(model, texts.tokenizer, name, curve, loss, **facts)


def train_row(row: StoryModel, args: argparse.Namespace) -> None:
    """Trains and ships one model."""
    texts, curve = prepare(args.corpus, args.work), []
    model = trained(row.start) if isinstance(row.start, str) else llama(**row.start)
    facts = {}
    for one in row.stages:
        if one.layers:
            model = deepened(model, one.layers)
        loss = None
        if one.exits:
            loss = exits_loss(model, one.exits, EXITS_WEIGHT)
            facts = {"exits": one.exits}
        curve = stage(
            model, texts, args, one.name, one.million_tokens, tasks=one.tasks, loss=loss, curve=curve
        )
    finish(model, texts, row.name, curve, **facts)
