"""Edits of single matrices W [out, in]: pruning by magnitude or Wanda, n:m sparsity, rounding to a few bits,
low rank; and the same for all linear layers of a model. Each returns a new matrix and leaves the old one
unchanged.

Sun et al. (2023), Wanda: the score of a weight is |W_ij| times the norm of input j, compared within its row.
Jaiswal et al. (2023), "Compressing LLMs", compares these methods.
"""

import copy
from collections.abc import Callable

import torch
from torch import nn

from decoders.models.own_text import texts_of_model
from decoders.refusal import Refusal

Norms = dict[str, torch.Tensor]  # name of a linear layer -> norms [in] of its inputs over a text
Pattern = float | tuple[int, int]  # share of zeros, or (n, m): n of every m weights are kept


def lowest(scores: torch.Tensor, share: float) -> torch.Tensor:
    """True for the `share` of places with the lowest scores along the last axis; ties go to the first."""
    count = round(share * scores.shape[-1])
    order = scores.argsort(dim=-1, stable=True)[..., :count]
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order, True)


def outside(scores: torch.Tensor, n: int, m: int) -> torch.Tensor:
    """True for all but the n highest of every m scores along the last axis. Raises Refusal with one
    sentence if m does not divide its length.
    """
    if scores.shape[-1] % m:
        raise Refusal(f"Rows of {scores.shape[-1]} weights have no groups of {m}; take another pattern.")
    groups = scores.unflatten(-1, (-1, m))
    order = groups.argsort(dim=-1, stable=True)[..., : m - n]
    return torch.zeros_like(groups, dtype=torch.bool).scatter(-1, order, True).flatten(-2)


def pruned(weight: torch.Tensor, pattern: Pattern, norms: torch.Tensor | None = None) -> torch.Tensor:
    """The weight with zeros where the scores are lowest: by magnitude within the whole matrix, or, with
    `norms` [in], by Wanda's score within each row.
    """
    scores = weight.abs().float() * (1.0 if norms is None else norms)
    if isinstance(pattern, tuple):
        return weight.masked_fill(outside(scores, *pattern), 0.0)
    zero = lowest(scores.flatten(), pattern).view_as(weight) if norms is None else lowest(scores, pattern)
    return weight.masked_fill(zero, 0.0)


def rounded_weight(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """The weight rounded to multiples of a step per row, with the row's largest being 2^(bits - 1) - 1
    steps.
    """
    largest = 2 ** (bits - 1) - 1
    step = weight.abs().amax(-1, keepdim=True).clamp(min=1e-12) / largest
    return (weight / step).round() * step


def low_rank(weight: torch.Tensor, share: float) -> torch.Tensor:
    """The nearest matrix with this share of the rank, at least rank 1."""
    u, s, v = torch.linalg.svd(weight.float(), full_matrices=False)
    rank = max(1, round(share * len(s)))
    return ((u[:, :rank] * s[:rank]) @ v[:rank]).to(weight.dtype)


def linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    """Name -> linear layer inside a model's blocks, without embeddings and head. Raises Refusal with one
    sentence if there are none.
    """
    head = model.get_output_embeddings()
    linears = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head}
    if not linears:
        raise Refusal(f"{type(model).__name__} has no linear layers that can be edited; take another.")
    return linears


@torch.no_grad()
def edited(model: nn.Module, change: Callable[[str, torch.Tensor], torch.Tensor]) -> nn.Module:
    """A copy whose linear layers have the weights `change(name, weight)`."""
    result = copy.deepcopy(model)
    for name, layer in linear_layers(result).items():
        layer.weight.copy_(change(name, layer.weight))
    return result


@torch.no_grad()
def input_norms(model: nn.Module, rows: torch.Tensor) -> Norms:
    """The norms of each linear layer's inputs while the model reads rows [N, T]."""
    squares: dict[str, torch.Tensor] = {}

    def hook_of(name: str) -> Callable:
        def add_squares(layer: nn.Module, inputs: tuple) -> None:
            seen = inputs[0].float().flatten(0, -2).square().sum(0)
            squares[name] = squares.get(name, 0.0) + seen

        return add_squares

    layers = linear_layers(model)
    hooks = [layer.register_forward_pre_hook(hook_of(name)) for name, layer in layers.items()]
    try:
        model(input_ids=rows.to(model.device), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: squares[name].sqrt() for name in layers}


def own_rows(model: nn.Module, begin: int, rows: int = 16, length: int = 64) -> torch.Tensor:
    """Calibration texts [rows, length] that the model samples after the token `begin`, always the same ones.
    Leaves the global random state unchanged.
    """
    state = torch.get_rng_state()
    torch.manual_seed(0)
    try:
        return texts_of_model(model, begin, rows, length)
    finally:
        torch.set_rng_state(state)
