"""Arithmetic with low-rank modules: sums, negation and analogies without training.

Zhang et al. (2023), "Composing Parameter-Efficient Modules with Arithmetic Operations": a sum averages every
parameter of the modules, A and B separately, so that products of one's B with another's A arise; a module is
negated by its B alone. Knows weights, no models and no texts.
"""

from collections.abc import Sequence

import torch

from decoders.models.lora import Adapter

Module = dict[str, tuple[torch.Tensor, torch.Tensor]]  # matrix -> A [r, in], B [out, r]
CLOSE = 1e-6


def change(module: Module) -> dict[str, torch.Tensor]:
    """What a module adds to each matrix [out, in]."""
    return {name: b @ a for name, (a, b) in module.items()}


def added(modules: Sequence[Module], weights: Sequence[float]) -> Module:
    """The modules averaged: A = sum w A_i and B = sum w B_i, the weights making 1. Raises ValueError with one
    sentence if they do not, or if the modules are of different shapes.
    """
    if abs(sum(weights) - 1) > CLOSE:
        raise ValueError(
            f"The weights of added modules sum to {sum(weights):g}; choose weights that sum to 1."
        )
    shapes = [{name: (a.shape, b.shape) for name, (a, b) in module.items()} for module in modules]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("Only low-rank modules of one rank on the same matrices can be added; take others.")
    pairs = list(zip(weights, modules, strict=True))
    return {
        name: (
            sum(w * module[name][0] for w, module in pairs),
            sum(w * module[name][1] for w, module in pairs),
        )
        for name in modules[0]
    }


def averaged(modules: Sequence[Module], weights: Sequence[float]) -> dict[str, torch.Tensor]:
    """What to compare a sum with: the average of what the modules add to each matrix, without cross terms."""
    changes = list(zip(weights, map(change, modules), strict=True))
    return {name: sum(w * one[name] for w, one in changes) for name in modules[0]}


def scaled(module: Module, weight: float) -> Module:
    """The module whose change is `weight` times as large: B alone is scaled."""
    return {name: (a, weight * b) for name, (a, b) in module.items()}


def negated(module: Module) -> Module:
    """Undoes what the module does, up to cross terms: B alone changes its sign, since both would change
    nothing.
    """
    return scaled(module, -1.0)


def negated_ia3(scales: torch.Tensor) -> torch.Tensor:
    """The negation of the factors of an (IA)^3 module, which stand at 1 where they change nothing."""
    return 2 - scales


def analogy(c: Module, a: Module, b: Module, weight: float = 0.5) -> Module:
    """C + (A - B): what A is to B, to C. `weight`: of C; the difference, an even sum, has the rest."""
    return added([c, added([a, negated(b)], [0.5, 0.5])], [weight, 1 - weight])


def combined(terms: Sequence[tuple[float, Adapter]]) -> Adapter:
    """The adapter of a sum of weighted ones. A lone one is scaled; of several the sizes of the weights make
    1, and those with a minus sign are negated. The rows of tokens that several added are averaged as well.
    Raises ValueError with one sentence if they have different bases or cannot be added.
    """
    adapters = [adapter for _, adapter in terms]
    if len({adapter.base for adapter in adapters}) > 1:
        raise ValueError("Low-rank modules of different models cannot be added; take those of one model.")
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
    """The embedding [d] of an added token: the average of those who know it, alike if none has a weight."""
    known = [
        (w, one.rows[one.tokens.index(token)])
        for w, one in zip(sizes, adapters, strict=True)
        if token in one.tokens
    ]
    total = sum(w for w, _ in known)
    return sum((w / total if total else 1 / len(known)) * row for w, row in known)
