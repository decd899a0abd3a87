"""The neurons of a model's feed-forward layers as bricks (Configurable Foundation Models, Xiao et al.
2024): when they fire, for which kind of text, and what the model loses without some. Knows models built
like Llama and tensors.

The study is ours: the paper surveys such partitions. A neuron fires where its gate `act(W_gate x)` is
positive.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Bricks = list[torch.Tensor]  # for each layer the numbers of some neurons


def downs(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Of each layer what reads its neurons: `down_proj`. ValueError with one sentence if there is none."""
    found = [getattr(getattr(layer, "mlp", None), "down_proj", None) for layer in model.base_model.layers]
    if None in found:
        raise ValueError(
            f"{type(model).__name__} has no gated feed-forward layers; choose a model like Llama."
        )
    return found


@contextmanager
def hearing(parts: list[torch.nn.Module], hear: Callable) -> Iterator[None]:
    """While this is open, `hear(layer, what goes in)` is called before each part; what it gives, unless None,
    goes in instead.
    """
    hooks = [
        part.register_forward_pre_hook(lambda _, read, at=at: hear(at, read[0]))
        for at, part in enumerate(parts)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def gates(model: torch.nn.Module, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(gates after their activation, what the neurons say), each [L, N, M], of the N tokens of rows [B, T]
    and the M neurons of each of L layers.
    """
    gate: list[torch.Tensor] = []
    said: list[torch.Tensor] = []
    acts = [layer.mlp.gate_proj for layer in model.base_model.layers]
    hooks = [
        part.register_forward_hook(
            lambda _, __, out, act=layer.mlp.act_fn: gate.append(act(out).flatten(0, 1).float())
        )
        for part, layer in zip(acts, model.base_model.layers, strict=True)
    ]
    try:
        with hearing(downs(model), lambda _, read: said.append(read.flatten(0, 1).float())):
            model(input_ids=rows)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(gate), torch.stack(said)


def average_precision(values: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """How well each neuron's value tells wanted tokens from others, [M]: the mean, over wanted tokens, of the
    share of wanted ones among all tokens at which the value is at least as high. values [N, M], wanted [N].
    """
    order = values.argsort(0, descending=True)
    hits = wanted.double()[order].cumsum(0)  # [N, M]
    ranks = torch.arange(1, len(values) + 1, dtype=torch.float64)[:, None]
    high = values.gather(0, order)
    last = torch.ones_like(high, dtype=torch.bool)  # of tokens with one value: only behind the last is a cut
    last[:-1] = high[:-1] != high[1:]
    before = torch.zeros_like(hits)
    cuts = torch.where(last, hits, 0.0).cummax(0).values
    before[1:] = cuts[:-1]
    return (torch.where(last, (hits - before) * hits / ranks, 0.0)).sum(0) / wanted.sum()


def best(scores: torch.Tensor, share: float) -> Bricks:
    """The neurons with the highest scores [L, M], `share` of all, by layer."""
    count = max(1, round(share * scores.numel()))
    chosen = torch.zeros(scores.numel(), dtype=torch.bool)
    chosen[scores.flatten().topk(count).indices] = True
    return [row.nonzero()[:, 0] for row in chosen.view(scores.shape)]


def random_bricks(shape: torch.Size, share: float, seed: int) -> Bricks:
    """As many neurons drawn by chance."""
    return best(torch.rand(shape, generator=torch.Generator().manual_seed(seed)), share)


@contextmanager
def without(model: torch.nn.Module, bricks: Bricks, means: torch.Tensor) -> Iterator[None]:
    """While this is open, these neurons always say their mean; means [L, M]."""

    def hear(layer: int, read: torch.Tensor) -> tuple[torch.Tensor]:
        changed = read.clone()
        changed[..., bricks[layer]] = means[layer, bricks[layer]].to(read.dtype)
        return (changed,)

    with hearing(downs(model), hear):
        yield


@torch.no_grad()
def loss_of(model: torch.nn.Module, rows: torch.Tensor) -> float:
    """Mean loss of the next token in nats over rows [B, T]."""
    logits = model(input_ids=rows).logits[:, :-1].float()
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()))
