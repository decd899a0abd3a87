"""Turns queries and keys to other rotary positions (Su et al. 2021), in the layout of Llama and related
models.
"""

import torch


class Rotary:
    """`turn(x, positions)` adds positions, which may be negative, to the one that x has already."""

    def __init__(self, frequencies: torch.Tensor):
        self.frequencies = frequencies.double()  # [D / 2]

    def turn(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x [..., N, D], positions [N] or [..., N]: the same shape."""
        angle = positions.to(torch.float64)[..., None] * self.frequencies  # [..., N, D / 2]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def rotary_of(model: torch.nn.Module) -> Rotary | None:
    """The rotary positions of a model; None if it has none that turn whole heads by fixed frequencies."""
    rotary = getattr(getattr(model, "model", None), "rotary_emb", None)
    frequencies = getattr(rotary, "inv_freq", None)
    plain = frequencies is not None and getattr(rotary, "attention_scaling", 1.0) == 1.0
    return Rotary(frequencies) if plain else None
