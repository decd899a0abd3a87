"""Training with most weights at zero: fixed random masks (sparse pre-training, SPDF) and n of every m kept,
with a gradient that fades for what is masked in place of vanishing (progressive gradient flow), and weights
that are removed step by step (The Journey Matters, 2025).

Thangarasa et al. (2023), SPDF: uniform random static masks, all weights free again when fine-tuned.
Bambhaniya et al. (2024), "Progressive Gradient Flow for Robust N:M Sparsity Training": MdGf multiplies masked
weights by a factor that falls from 1 to 0, so that a gradient, weaker and weaker, still reaches them. SR-STE
(Zhou et al. 2021), to compare with: gradients pass as if nothing were masked, and masked weights decay.
"""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.utils import parametrize

from decoders.models.editing.matrices import linear_layers, lowest, outside

DECAY = 2e-4  # of masked weights in SR-STE
Kept = Callable[[torch.Tensor], torch.Tensor]  # weights [out, in] -> mask, True for active weights


class Masked(nn.Module):
    """The weight used in the forward pass: masked weights are multiplied by `factor` (0: removed; 1:
    unchanged). `straight`: the gradient passes as if nothing were masked, and masked weights get SR-STE's
    decay.
    """

    def __init__(self, kept: Kept, factor: float = 0.0, straight: bool = False):
        super().__init__()
        self.kept, self.factor, self.straight = kept, factor, straight

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        kept = self.kept(weight.detach())
        if self.straight:
            return Straight.apply(weight, kept)
        return torch.where(kept, weight, self.factor * weight)


class Straight(torch.autograd.Function):
    """SR-STE: masked forward, dense backward, and DECAY times the masked weights added to the gradient."""

    @staticmethod
    def forward(context, weight: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(weight, kept)
        return weight.masked_fill(~kept, 0.0)

    @staticmethod
    def backward(context, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        weight, kept = context.saved_tensors
        return gradient + DECAY * weight.masked_fill(kept, 0.0), None


def random_mask(weight: torch.Tensor, share: float, seed: int) -> torch.Tensor:
    """True for the active weights: all but a random `share`, fixed from the start."""
    draw = torch.Generator().manual_seed(seed)
    zero = torch.randperm(weight.numel(), generator=draw)[: round(share * weight.numel())]
    return torch.ones(weight.numel(), dtype=torch.bool).index_fill(0, zero, False).view_as(weight)


def n_of_m(n: int, m: int) -> Kept:
    """A mask of the n largest of every m weights along the inputs, chosen again at each step."""
    return lambda weight: ~outside(weight.abs(), n, m)


class Gradual:
    """A mask whose zeros grow: whenever `share` has risen, the smallest of the weights that are left go too,
    for good (gradual magnitude pruning, Zhu and Gupta 2017).
    """

    def __init__(self, weight: torch.Tensor):
        self.share = 0.0
        self.gone = torch.zeros_like(weight, dtype=torch.bool)

    def __call__(self, weight: torch.Tensor) -> torch.Tensor:
        """True for the active weights."""
        if round(self.share * weight.numel()) > int(self.gone.sum()):
            left = weight.abs().masked_fill(self.gone, -1.0)
            self.gone = lowest(left.flatten(), self.share).view_as(weight)
        return ~self.gone


def mask(model: nn.Module, made: Callable[[int, torch.Tensor], Masked]) -> list[Masked]:
    """Masks the linear layers inside a model's blocks with the masks that `made(number, weight)` returns."""
    masks = []
    for at, layer in enumerate(linear_layers(model).values()):
        masks.append(made(at, layer.weight))
        parametrize.register_parametrization(layer, "weight", masks[-1])
    return masks


def unmask(model: nn.Module) -> None:
    """Makes the layers plain again; masked weights keep their effective value and can be trained."""
    for layer in linear_layers(model).values():
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)


def zeros(model: nn.Module) -> float:
    """The share of the weights in linear layers that have no effect."""
    weights = [layer.weight for layer in linear_layers(model).values()]
    return sum(int((w == 0).sum()) for w in weights) / sum(w.numel() for w in weights)


def fading(step: int, dense: int, last: int) -> float:
    """MdGf's factor of masked weights at a step: 1 up to step `dense`, 0 from step `last` on, and in between
    exp(-5 t) for t from 0 to 1.
    """
    if step < dense:
        return 1.0
    return 0.0 if step >= last else math.exp(-5 * (step - dense) / (last - dense))


def removed(step: int, steps: int, share: float) -> float:
    """The share of zeros at a step of the journey: none in the first quarter of the training, then growing
    evenly to `share` at three quarters.
    """
    return share * min(1.0, max(0.0, 2 * step / steps - 0.5))


def training_flops(parameters: int, tokens: int, share: float = 0.0) -> float:
    """Training FLOPs: 6 per token and active weight."""
    return 6.0 * parameters * (1 - share) * tokens
