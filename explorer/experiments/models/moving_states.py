"""Hidden state optimisation: the cached states of a text take gradient steps that make the text that follows
more likely; the weights stay frozen.

Making the Most of your Model (2024), after Reconsidering the Past (Yoshida and Gimpel 2021); the sizes of a
window and of a step are ours. Works on a causal LM of transformers and its cache: a lane's engine keeps
states without gradients.
"""

from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel

from decoders.refusal import Refusal

RULES = ("sgd", "adam")
FADES, EPSILON = (0.9, 0.999), 1e-8  # of Adam


@dataclass
class Moments:
    """Adam's running means of each state's gradient and of its square, and how many steps it has taken; they
    move with the state.
    """

    first: torch.Tensor
    second: torch.Tensor
    steps: torch.Tensor  # [1, 1, context, 1]


def window_losses(
    model: PreTrainedModel,
    tokens: list[int],
    window: int,
    step: float,
    rule: str = "adam",
    moved: list[torch.Tensor] | None = None,
) -> list[float]:
    """-log p in nats of tokens[1:], each predicted before its own gradient is used.

    Window by window: a forward over the window's tokens with the cache so far; the gradient of its mean loss
    with respect to every cached key and value; one step of size `step` on these (`rule`: sgd, or adam with
    moments for each state); then the window's own states are computed again from the states that moved.
    `moved`: a list that gets a tensor [context] for each layer, how far the states of each position lie in
    the end from where they were computed. Raises ValueError for another rule or a window below 1.
    """
    if rule not in RULES or window < 1:
        raise Refusal(f"rule must be one of {', '.join(RULES)} and window at least 1.")
    ids = torch.tensor([tokens], device=model.device)
    states: list[list[torch.Tensor]] = []  # for each layer: keys and values [1, heads, context, width]
    moments: list[list[Moments]] = []
    origins: list[list[torch.Tensor]] = []  # the states as they were computed
    losses: list[float] = []
    for start in range(0, len(tokens) - 1, window):
        read = ids[:, start : start + window]
        targets = ids[0, start + 1 : start + 1 + window]
        leaves = [[part.detach().requires_grad_(bool(step)) for part in layer] for layer in states]
        with torch.set_grad_enabled(bool(step) and bool(states)):
            logits = model(read, past_key_values=cache_of(model, leaves), use_cache=True).logits[
                0, : len(targets)
            ]
            each = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
        losses += each.tolist()
        if step and states:
            flat = [part for layer in leaves for part in layer]
            gradients = iter(torch.autograd.grad(each.mean(), flat))
            for layer, kept in zip(states, moments, strict=True):
                for at in (0, 1):
                    layer[at] = layer[at] - step * direction(next(gradients), kept[at], rule)
        with torch.no_grad():
            cache = cache_of(model, states)
            model(read, past_key_values=cache, use_cache=True)
        states = [[layer.keys, layer.values] for layer in cache.layers]
        origins = [
            [
                part if known is None else torch.cat([known[at], part[:, :, known[at].shape[2] :]], dim=2)
                for at, part in enumerate(layer)
            ]
            for layer, known in zip(states, origins or [None] * len(states), strict=True)
        ]
        moments = [
            [grown(kept[at] if kept else None, part) for at, part in enumerate(layer)]
            for layer, kept in zip(states, moments or [None] * len(states), strict=True)
        ]
    if moved is not None:
        moved += [distances(layer, known) for layer, known in zip(states, origins, strict=True)]
    return losses


def distances(states: list[torch.Tensor], origins: list[torch.Tensor]) -> torch.Tensor:
    """How far a layer's keys and values together have moved, position by position [context]."""
    squares = [((now - then).float() ** 2).sum((0, 1, 3)) for now, then in zip(states, origins, strict=True)]
    return sum(squares).sqrt()


def cache_of(model: PreTrainedModel, states: list[list[torch.Tensor]]) -> DynamicCache:
    """A cache with these keys and values."""
    cache = DynamicCache(config=model.config)
    for index, (keys, values) in enumerate(states):
        cache.update(keys, values, index)
    return cache


def grown(kept: Moments | None, part: torch.Tensor) -> Moments:
    """The moments of all states of `part`; new ones begin at zero."""
    made = Moments(torch.zeros_like(part), torch.zeros_like(part), torch.zeros_like(part[:1, :1, :, :1]))
    if kept is not None:
        known = kept.first.shape[2]
        made.first[:, :, :known] = kept.first
        made.second[:, :, :known] = kept.second
        made.steps[:, :, :known] = kept.steps
    return made


def direction(gradient: torch.Tensor, kept: Moments, rule: str) -> torch.Tensor:
    """The direction that a step follows backwards: the gradient, or Adam's ratio of its moments."""
    if rule == "sgd":
        return gradient
    first, second = FADES
    kept.steps += 1
    kept.first.mul_(first).add_(gradient, alpha=1 - first)
    kept.second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    mean, square = kept.first / (1 - first**kept.steps), kept.second / (1 - second**kept.steps)
    return mean / (square.sqrt() + EPSILON)
