"""Shared by the tests of batches: what each text of a batch received, and what it receives alone."""

import torch

from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Cell
from decoders.trace.trace import Trace
from tests.helpers import tiny_models

KEPT = ("accepted", "resampled", "bonus", "settled")


def cousins(kind: str = "llama") -> dict[str, LoadedModel]:
    """A tiny target, and a draft that sometimes agrees with it: the same model with noise in its head."""
    models = {"target": tiny_models.make(kind), "draft": tiny_models.make(kind)}
    weight = models["draft"].model.get_output_embeddings().weight
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(3))
    weight.add_(0.15 * noise)
    return models


def written(trace: Trace) -> dict[str, list[int]]:
    """Text -> its tokens, in order, according to the cells."""
    texts: dict[str, list[int]] = {}
    for step in trace.steps:
        for cell in step.of(Cell):
            if cell.state in KEPT:
                texts.setdefault(cell.level, []).append(cell.token)
    return texts


def rounds(trace: Trace) -> list[dict[str, list[Cell]]]:
    """The cells of each round, text by text."""
    found = []
    for step in trace.steps:
        found.append({})
        for cell in step.of(Cell):
            found[-1].setdefault(cell.level, []).append(cell)
    return found


def drafted(cells: list[Cell]) -> list[Cell]:
    """The guesses among the cells of a text in a round."""
    return [cell for cell in cells if cell.state not in ("resampled", "bonus", "settled")]


def accepted(cells: list[Cell]) -> int:
    """How many guesses a text accepted in a round."""
    return sum(cell.state == "accepted" for cell in cells)


def run(
    strategy: str,
    models: dict,
    prompts: list[str],
    length: int,
    parameters: dict | None = None,
    seed: int = 0,
) -> Trace:
    """The trace of a batch of these prompts."""
    ids, parameters = (
        models["target"].encode(prompts[0]),
        {"prompts": "\n".join(prompts[1:])} | (parameters or {}),
    )
    return Lane(strategy, ids, models, parameters, seed, Limits(length)).run()


def alone(models: dict, prompt: str, length: int) -> list[int]:
    """Greedy decoding's text after a prompt."""
    return Lane("greedy", models["target"].encode(prompt), models, limits=Limits(length)).run().output()
