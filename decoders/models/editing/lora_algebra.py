"""Arithmetic with low-rank modules: sums, negation and analogies without training.

Zhang et al. (2023), "Composing Parameter-Efficient Modules with Arithmetic Operations": a sum averages A and
B of the modules separately, which gives cross terms of one module's B with another's A; negation changes the
sign of B alone.
"""

from collections.abc import Sequence

import torch

from decoders.models.lora import Adapter
from decoders.refusal import Refusal

Module = dict[str, tuple[torch.Tensor, torch.Tensor]]  # matrix -> A [r, in], B [out, r]
CLOSE = 1e-6


def change(module: Module) -> dict[str, torch.Tensor]:
    """The change B A [out, in] that a module adds to each matrix."""
    return {name: b @ a for name, (a, b) in module.items()}


def added(modules: Sequence[Module], weights: Sequence[float]) -> Module:
    """The sum of modules: A = sum w_i A_i and B = sum w_i B_i, with weights that sum to 1. Raises Refusal
    with one sentence if they do not, or if the modules' shapes differ.
    """
    if abs(sum(weights) - 1) > CLOSE:
        raise Refusal(f"The weights of added modules sum to {sum(weights):g}; choose weights that sum to 1.")
    shapes = [{name: (a.shape, b.shape) for name, (a, b) in module.items()} for module in modules]
    if any(shape != shapes[0] for shape in shapes):
        raise Refusal("Only low-rank modules of one rank on the same matrices can be added; take others.")
    pairs = list(zip(weights, modules, strict=True))
    return {
        name: (
            sum(w * module[name][0] for w, module in pairs),
            sum(w * module[name][1] for w, module in pairs),
        )
        for name in modules[0]
    }


def averaged(modules: Sequence[Module], weights: Sequence[float]) -> dict[str, torch.Tensor]:
    """The weighted average of the modules' changes to each matrix, without cross terms, to compare a sum
    with.
    """
    changes = list(zip(weights, map(change, modules), strict=True))
    return {name: sum(w * one[name] for w, one in changes) for name in modules[0]}


def scaled(module: Module, weight: float) -> Module:
    """The module whose change is `weight` times as large: B alone is scaled."""
    return {name: (a, weight * b) for name, (a, b) in module.items()}


def negated(module: Module) -> Module:
    """The module with the sign of B changed, which undoes its change; changing both signs would do
    nothing.
    """
    return scaled(module, -1.0)


def negated_ia3(scales: torch.Tensor) -> torch.Tensor:
    """The negation of the factors of an (IA)^3 module: 2 - factor, since 1 changes nothing."""
    return 2 - scales


def analogy(c: Module, a: Module, b: Module, weight: float = 0.5) -> Module:
    """C + (A - B), by which C changes as B changes to A. `weight`: of C; the difference has the rest."""
    return added([c, added([a, negated(b)], [0.5, 0.5])], [weight, 1 - weight])


def combined(terms: Sequence[tuple[float, Adapter]]) -> Adapter:
    """The weighted sum of adapters. A single one is scaled. Of several, the absolute weights must sum to 1,
    and those with negative weights are negated; rows of tokens that several adapters add are averaged too.
    Raises Refusal with one sentence if their bases differ or they cannot be added.
    """
    adapters = [adapter for _, adapter in terms]
    if len({adapter.base for adapter in adapters}) > 1:
        raise Refusal("Low-rank modules of different models cannot be added; take those of one model.")
    modules = [scaled(adapter.matrices, adapter.scale) for adapter in adapters]
    signs = [-1.0 if w < 0 else 1.0 for w, _ in terms]
    sizes = [abs(w) for w, _ in terms]
    if len(terms) == 1:
        matrices = scaled(modules[0], terms[0][0])
    else:
        matrices = added([scaled(m, s) for m, s in zip(modules, signs, strict=True)], sizes)
    tokens = list(dict.fromkeys(token for adapter in adapters for token in adapter.tokens))
    rows = [row_of(token, adapters, sizes) for token in tokens]
    empty = adapters[0].rows[:0]
    return Adapter(adapters[0].base, 1.0, matrices, tokens, torch.stack(rows) if rows else empty, {})


def row_of(token: str, adapters: list[Adapter], sizes: list[float]) -> torch.Tensor:
    """The embedding [d] of an added token: the weighted average over adapters that have it; unweighted if all
    their weights are 0.
    """
    known = [
        (w, one.rows[one.tokens.index(token)])
        for w, one in zip(sizes, adapters, strict=True)
        if token in one.tokens
    ]
    total = sum(w for w, _ in known)
    return sum((w / total if total else 1 / len(known)) * row for w, row in known)
