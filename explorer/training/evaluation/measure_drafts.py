"""How often draft modules and early exits guess what the target says, per task and for stories.

Knows no strategy: the numbers are taken along texts that the target wrote, every drafter in front of the same
places.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch

from decoders.heads import DraftModule, Taps, Target, take_taps
from decoders.models.head_files import read_config
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from explorer.training.evaluation.measure_acceptance import FILE, prompts

DEPTH, RANKS = 4, 8
NEW_TOKENS = 48
Guess = Callable[[Taps, int], list[torch.Tensor]]  # as DraftModule.along


def exit_guess(target: Target, layer: int) -> Guess:
    """The guesses of the plain early exit after `layer` layers: the model's own last norm and head."""

    def along(taps: Taps, depth: int) -> list[torch.Tensor]:
        logits = target.exit_logits(taps.states[layer])
        return [logits[:, k:-1] for k in range(1, depth + 1)]

    return along


@torch.no_grad()
def written(
    target: LoadedModel, prompts: list[list[int]], new_tokens: int, temperature: float = 0.0
) -> list[list[int]]:
    """Each prompt with what the target writes behind it, up to its end token: greedy or sampled, seed 0."""
    longest, pad = max(map(len, prompts)), 0
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts], device=target.model.device)
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=ids.device)
    torch.manual_seed(0)
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    )
    wrote = target.model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=new_tokens, pad_token_id=pad, **sampling
    )[:, longest:].tolist()
    texts = []
    for prompt, new in zip(prompts, wrote, strict=True):
        ends = [at for at, token in enumerate(new) if token in target.eos]
        texts.append(prompt + (new[: ends[0] + 1] if ends else new))
    return texts


class Tally:
    """Sums over texts of what one drafter guessed."""

    def __init__(self, depth: int):
        self.right = torch.zeros(depth, RANKS)
        self.overlap, self.places = torch.zeros(depth), torch.zeros(depth)
        self.accepted = 0

    def add(self, guesses: list[torch.Tensor], taps: Taps, start: int) -> None:
        """guesses: as `DraftModule.along`, of one text. start: the first row n whose root was written by the
        target.
        """
        tokens, running = taps.tokens[0], None
        for at, logits in enumerate(guesses):
            k, logits = at + 1, logits[0, start:].float()  # [N, V]
            if not len(logits):
                break
            following = tokens[start + 1 + k :]  # [N]
            hits = logits.topk(RANKS).indices == following[:, None]
            p = taps.p[0, start + k : start + k + len(logits)]
            self.right[at] += hits.sum(0).cpu()
            self.overlap[at] += torch.minimum(p, logits.softmax(-1)).sum().cpu()
            self.places[at] += len(logits)
            running = hits[:, 0] if running is None else running[: len(hits)] & hits[:, 0]
            self.accepted += int(running.sum())

    def numbers(self) -> dict:
        """See `measured`."""
        places = self.places.clamp(min=1)
        return {
            "places": int(self.places[0]),
            "accuracy": (self.right / places[:, None]).tolist(),
            "accepted": self.accepted / places[0].item(),
            "overlap": (self.overlap / places).tolist(),
        }


@torch.no_grad()
def along_texts(
    target: LoadedModel,
    guesses: dict[str, Guess],
    texts: list[list[int]],
    starts: list[int],
    layers,
    depth: int,
) -> dict[str, dict]:
    """The numbers of each drafter over `texts`, in which all behind `starts` tokens is the target's."""
    tallies = {name: Tally(depth) for name in guesses}
    for text, start in zip(texts, starts, strict=True):
        taps = take_taps(target.model, torch.tensor([text], device=target.model.device), layers)
        for name, along in guesses.items():
            tallies[name].add(along(taps, depth), taps, start - 1)
    return {name: tally.numbers() for name, tally in tallies.items()}


def measured(
    target: LoadedModel,
    heads: dict[str, DraftModule],
    groups: dict[str, list[list[int]]],
    exits: tuple[int, ...],
    new_tokens: int = NEW_TOKENS,
    depth: int = DEPTH,
) -> dict[str, dict[str, dict]]:
    """Name of a group of prompts -> drafter (`exit 3`, ..., the names in `heads`) -> numbers:

    - `accuracy[k - 1][r]`: share of places where the guess of rank r (from 0) at depth k is what the target
      says greedily, the path above it being right
    - `accepted`: mean length of the chain of best guesses that greedy decoding accepts, at most `depth`
    - `overlap[k - 1]`: along texts sampled at temperature 1, the mean of sum min(p, q): how often a token
      drawn at depth k is accepted
    - `places`: greedy places that were counted
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


def measure_exits(folder: Path, corpus: Path) -> None:
    """Leaves acceptance.json beside the weights of a target with early exits: see `measured`."""
    exits = tuple(json.loads((folder / "facts.json").read_text())["exits"])
    target = load(str(folder))
    keep(folder, measured(target, {}, prompts(corpus, target), exits))


def measure_heads(folder: Path, corpus: Path) -> None:
    """Leaves acceptance.json beside draft heads: see `measured`."""
    target = load(str(folder.parent / read_config(folder.name, folder)["target"]))
    keep(folder, measured(target, load_heads(str(folder), target), prompts(corpus, target), exits=()))


def keep(folder: Path, result: dict[str, dict[str, dict]]) -> None:
    """Writes the numbers, each to four digits, and prints the first of them."""
    rounded = json.loads(json.dumps(result), parse_float=lambda digits: round(float(digits), 4))
    (folder / FILE).write_text(json.dumps(rounded) + "\n")
    for group, drafters in result.items():
        for name, numbers in drafters.items():
            first = "  ".join(f"{ranks[0]:.3f}" for ranks in numbers["accuracy"])
            print(f"{group:14}{name:10}  {first}  {numbers['accepted']:.2f}  {numbers['overlap'][0]:.3f}")
