"""How often draft modules and early exits agree with the target, per task and for stories.

The numbers are taken along texts that the target wrote, with every drafter at the same positions.
"""

import json
from pathlib import Path

import torch

from decoders.heads import DraftModule, Taps, Target
from decoders.models.head_files import read_config
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from explorer.experiments.models.guesses import Guess, along_texts, written
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.measure_acceptance import FILE, prompts

DEPTH = 4
NEW_TOKENS = 48


def exit_guess(target: Target, layer: int) -> Guess:
    """The guesses of the plain early exit after `layer` layers: the model's own last norm and head."""

    def along(taps: Taps, depth: int) -> list[torch.Tensor]:
        logits = target.exit_logits(taps.states[layer])
        return [logits[:, k:-1] for k in range(1, depth + 1)]

    return along


def measured(
    target: LoadedModel,
    heads: dict[str, DraftModule],
    groups: dict[str, list[list[int]]],
    exits: tuple[int, ...],
    new_tokens: int,
    depth: int = DEPTH,
) -> dict[str, dict[str, dict]]:
    """Name of a group of prompts -> drafter (`exit 3`, ..., the names in `heads`) -> numbers: `accuracy[k -
    1][r]`: share of positions at which the guess of rank r (from 0) at depth k is the target's greedy token,
    given a right path above it; `accepted`: mean length of the chain of best guesses that greedy decoding
    accepts, at most `depth`; `overlap[k - 1]`: along texts sampled at temperature 1, the mean of sum min(p,
    q), how often a token sampled at depth k is accepted; `places`: number of greedy positions.
    """
    shared = Target.of(target.model)
    guesses = {f"exit {layer}": exit_guess(shared, layer) for layer in exits}
    guesses |= {name: module.along for name, module in heads.items()}
    layers = tuple(sorted({*exits, *(layer for module in heads.values() for layer in module.reads)}))
    result = {}
    for group, asked in groups.items():
        starts = [len(p) for p in asked]
        greedy, sampled = (
            along_texts(target, guesses, written(target, asked, new_tokens, t), starts, layers, depth)
            for t in (0.0, 1.0)
        )
        result[group] = {name: {**greedy[name], "overlap": sampled[name]["overlap"]} for name in guesses}
    return result


def measure_exits(folder: Path, corpus: Path) -> Findings:
    """Of a target with early exits: see `measured`."""
    exits = tuple(json.loads((folder / "facts.json").read_text("utf-8"))["exits"])
    target = load(str(folder))
    return rounded(measured(target, {}, prompts(corpus, target), exits, NEW_TOKENS))


def measure_heads(folder: Path, corpus: Path) -> Findings:
    """Of draft heads: see `measured`."""
    target = load(str(folder.parent / read_config(folder.name, folder)["target"]))
    heads = load_heads(str(folder), target)
    return rounded(measured(target, heads, prompts(corpus, target), (), NEW_TOKENS))


def rounded(result: dict[str, dict[str, dict]]) -> Findings:
    """The numbers, each to four digits, all in one line; prints the first of them."""
    digits = json.loads(json.dumps(result), parse_float=lambda number: round(float(number), 4))
    for group, drafters in result.items():
        for name, numbers in drafters.items():
            first = "  ".join(f"{ranks[0]:.3f}" for ranks in numbers["accuracy"])
            print(f"{group:14}{name:10}  {first}  {numbers['accepted']:.2f}  {numbers['overlap'][0]:.3f}")
    return Findings({FILE: json.dumps(digits)})
