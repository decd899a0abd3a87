"""Can one training run make every exit good?

Published for an encoder for code search, which writes no text (MoSE: one loss for each of five exits of a
36-layer model, masked words and "same repository", weights i / 36). Tried here instead: small language models
of eight layers, trained in the same way on text that the target wrote, with next-token loss; the thousand
most frequent tokens are distinguished, all others count as one. single exit: the loss after the last layer
only. LayerSkip: layers dropped at random, and the loss of the exits in turn, with LayerSkip's weights. joint
exits: the losses after layers 2, 4, 6 and 8 at once, times 1/4, 1/2, 3/4 and 1, with one head for all and a
learned vector for each exit. fitted heads: a norm and a head of its own for each exit of the single-exit
model, which stays unchanged. Then each token leaves at the first exit whose most likely token is at least as
probable as a threshold: how many layers does it take, and how often does the last exit agree? The states of
earlier tokens are those of all layers. Each model is trained for two minutes, far from convergence.
"""

import copy
import re
from collections.abc import Callable

import torch
from torch import nn

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import FAR_ABOVE, Basis
from explorer.experiments.models.exits import Exits, joint_weights, rotated, skip_probs, skip_weights
from explorer.experiments.models.small import fit, next_loss, own_text, words
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import moved, rows_with
from explorer.experiments.without_decoding.information_surplus import by_frequency

PAPERS = ("one-model-to-train-them-all",)
LAYERS, WIDTH, HEADS, EXITS = 8, 96, 4, (2, 4, 6, 8)
FREQUENT = 1023  # tokens of the vocabulary; with all, the head would take most of the time
TEXTS, HELD_OUT, LENGTH = 448, 32, 128
STEPS, HEAD_STEPS, BATCH, RATE = 450, 150, 8, 3e-3
DROP, SCALE, EVERY = 0.1, 0.2, 4  # LayerSkip's, the curriculum's step halved for so few layers
SHOWN = 28  # tokens in the picture
THRESHOLDS, EXAMPLE = (0.3, 0.5, 0.7, 0.9, 1.01), 0.5  # EXAMPLE: the one used in the sentences
# One per exit: states of all layers, L times [B, T, d] -> logits [B, T, V].
Heads = list[Callable[[list[torch.Tensor]], torch.Tensor]]


def single(model: Exits, rows: torch.Tensor) -> torch.Tensor:
    """The loss after the last layer."""
    return next_loss(model.logits(model.states(rows), LAYERS), rows)


def skipping(model: Exits, rows: torch.Tensor, step: int) -> torch.Tensor:
    """LayerSkip's loss at a step of its training."""
    states = model.states(rows, skip_probs(LAYERS, DROP, step / STEPS))
    weights = skip_weights(LAYERS, SCALE, rotated(LAYERS, EVERY, step))
    return sum(w * next_loss(model.logits(states, at + 1), rows) for at, w in enumerate(weights) if w)


def joint(model: Exits, rows: torch.Tensor) -> torch.Tensor:
    """The weighted sum of the losses of all exits, deeper ones weighted more."""
    states = model.states(rows)
    weighted = zip(EXITS, joint_weights(LAYERS, EXITS), strict=True)
    return sum(weight * next_loss(model.logits(states, exit), rows) for exit, weight in weighted)


def trained(name: str, vocabulary: int, rows: torch.Tensor) -> Exits:
    """A model trained by a recipe; all start from the same weights and read the same batches."""
    model = Exits(vocabulary, LAYERS, WIDTH, HEADS)
    model.vectors.requires_grad_(name == "joint exits")
    steps = iter(range(STEPS))
    loss = {
        "single exit": lambda some: single(model, some),
        "LayerSkip": lambda some: skipping(model, some, next(steps)),
        "joint exits": lambda some: joint(model, some),
    }[name]
    fit(model.parameters(), loss, rows, STEPS, BATCH, RATE)
    return model.requires_grad_(False)


def own_heads(model: Exits) -> Heads:
    """The exits of a model through its shared head."""
    return [lambda states, exit=exit: model.logits(states, exit) for exit in EXITS]


def fitted_heads(model: Exits, rows: torch.Tensor) -> Heads:
    """A norm and a head for each exit but the last, initialised with the model's own and fitted to its
    states.
    """
    own = [nn.Sequential(copy.deepcopy(model.inner.norm), copy.deepcopy(model.head)) for _ in EXITS[:-1]]
    heads = nn.ModuleList(own).requires_grad_(True)

    def loss(some: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            states = model.states(some)
        return sum(
            next_loss(head(states[exit - 1]), some) for head, exit in zip(heads, EXITS[:-1], strict=True)
        )

    fit(heads.parameters(), loss, rows, HEAD_STEPS, BATCH, RATE)
    fitted = [
        lambda states, head=head, exit=exit: head(states[exit - 1])
        for head, exit in zip(heads, EXITS[:-1], strict=True)
    ]
    return [*fitted, own_heads(model)[-1]]


@torch.no_grad()
def asked(model: Exits, heads: Heads, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Loss, most likely token and its probability, each [E, N], for every exit and token of `rows`."""
    batches = []
    for some in rows.split(8):
        states, wanted = model.states(some[:, :-1]), some[:, 1:, None]
        each = []
        for head in heads:
            logprobs = head(states).log_softmax(-1)
            top, token = logprobs.max(-1)
            each.append([-logprobs.gather(-1, wanted)[..., 0], token, top.exp()])
        batches.append([torch.stack(part).flatten(1) for part in zip(*each, strict=True)])
    return tuple(torch.cat(part, 1) for part in zip(*batches, strict=True))


def first(sure: torch.Tensor, threshold: float) -> torch.Tensor:
    """The first exit [1, N] that is confident enough for each token, the last one if none is. sure [E, N]."""
    leaves = sure >= threshold
    leaves[-1] = True
    return leaves.int().argmax(0, keepdim=True)


def left(
    loss: torch.Tensor, token: torch.Tensor, sure: torch.Tensor, threshold: float
) -> tuple[float, float, float]:
    """(layers per token, share that agrees with the last exit, loss) when each token leaves at the first exit
    that is confident enough, otherwise at the last one.
    """
    exits = first(sure, threshold)
    layers = torch.tensor(EXITS, dtype=torch.float)[exits]
    agrees = token.gather(0, exits) == token[-1]
    return layers.mean().item(), agrees.float().mean().item(), loss.gather(0, exits).mean().item()


def drawn(tokens: list[str], by_recipe: dict[str, tuple[torch.Tensor, ...]]) -> list[TokenMap]:
    """The first tokens of a text: the loss of each after each exit, the last exit on top, and the exit at
    which it leaves. tokens: those shown; by_recipe: the result of `asked` by recipe.
    """
    count, losses = len(tokens), {}
    for name in ("single exit", "joint exits"):
        losses[name] = by_recipe[name][0][:, :count].flip(0)
    high = max(float(some.max()) for some in losses.values())
    rows = [f"after {exit} layers" for exit in reversed(EXITS)]
    maps = [
        TokenMap(f"The loss of each token, {name}", "nats", tokens, rows, some.tolist(), high)
        for name, some in losses.items()
    ]
    layers = torch.tensor(EXITS, dtype=torch.float)
    exits = [layers[first(some[2][:, :count], EXAMPLE)[0]].tolist() for some in by_recipe.values()]
    title, says = f"Layers that each token takes, at a threshold of {EXAMPLE:g}", "layers"
    return [*maps, TokenMap(title, says, tokens, list(by_recipe), exits, float(LAYERS))]


def run(models: Models) -> Result:
    """One row per recipe."""
    with progress.part(0.1):
        wrote = own_text(models, TEXTS + HELD_OUT, LENGTH)
    rows, held = by_frequency(wrote, wrote[:-HELD_OUT], FREQUENT).split([TEXTS, HELD_OUT])
    recipes = progress.each(("single exit", "LayerSkip", "joint exits"), until=0.8)
    known = {name: trained(name, FREQUENT + 1, rows) for name in recipes}
    plain = known["single exit"]
    kinds = {name: (model, own_heads(model)) for name, model in known.items()}
    with progress.part(0.8):
        kinds["fitted heads"] = (plain, fitted_heads(plain, rows))
    table: list[list[Cell]] = []
    everything = {name: asked(model, heads, held) for name, (model, heads) in progress.each(kinds.items())}
    for name, measured in everything.items():
        row: list[Cell] = [name, *measured[0].mean(1).tolist()]
        for threshold in THRESHOLDS:
            row += left(*measured, threshold)[:2]
        table.append(row)
    columns = ["recipe", *(f"loss after {exit}" for exit in EXITS)]
    for threshold in THRESHOLDS:
        columns += [f"layers at {threshold:g}", f"same at {threshold:g}"]
    lines = [Line(row[0], [[float(exit), row[1 + at]] for at, exit in enumerate(EXITS)]) for row in table]
    chart = Chart("The loss of every exit", "layers", "nats per token", lines)
    maps = drawn(words(models, wrote[-HELD_OUT, 1 : SHOWN + 1]), everything)
    return Result(columns, table, conclusions({row[0]: row[1:] for row in table}), chart, pictures=maps)


def conclusions(rows: dict[str, list[float]]) -> list[str]:
    """The conclusions, as sentences."""
    plain, fitted, together = (rows[name] for name in ("single exit", "fitted heads", "joint exits"))
    early = range(len(EXITS) - 1)
    below = [EXITS[at] for at in early if together[at] < fitted[at]]
    gains = ", ".join(f"{fitted[at] - together[at]:+.3f} after {EXITS[at]}" for at in early)
    says = [
        f"Joint exits have a lower loss than heads fitted to the frozen single-exit model at {len(below)} of "
        f"{len(early)} early exits: {gains} nats."
    ]
    for name in ("LayerSkip", "joint exits"):
        more = rows[name][len(early)] / plain[len(early)] - 1
        says.append(
            f"The loss of the last exit of {name} differs by {more:+.1%} from the single-exit model's."
        )
    best = min(range(len(EXITS)), key=lambda at: together[at])
    says.append(
        f"Of the joint exits the one after {EXITS[best]} layers has the lowest loss, "
        f"{together[best]:.3f} nats."
    )
    at = len(EXITS) + 2 * THRESHOLDS.index(EXAMPLE)
    takes = ", ".join(
        f"{row[at]:.2f} layers ({name}, {row[at + 1]:.0%} the same)" for name, row in rows.items()
    )
    says.append(f"At a threshold of {EXAMPLE:g} a token takes {takes}.")
    whole = all(row[-2] == LAYERS and row[-1] == 1.0 for row in rows.values())
    says.append(
        f"Above 1 no exit is confident enough: {'every' if whole else 'not every'} token takes all layers "
        "and is what the full model says."
    )
    return [re.sub(r" -(?=\d)", " −", one) for one in says]


def finding(answer: dict) -> str:
    """The first and the last exit, trained for the last exit alone and for all."""
    (single,), (joint,) = (rows_with(answer, "recipe", name) for name in ("single exit", "joint exits"))
    first, last = f"loss after {EXITS[0]}", f"loss after {EXITS[-1]}"
    return (
        f"When all exits are trained at once, the loss after {EXITS[0]} layers "
        f"{moved(single[first], joint[first])} nats, and the loss after all {EXITS[-1]} layers "
        f"{moved(single[last], joint[last])}."
    )


STANDS = Basis({"held-out texts": HELD_OUT}, trained=1, unfinished=FAR_ABOVE)
