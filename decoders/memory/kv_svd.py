"""Effectively Compress KV Heads for LLM (Yu et al. 2024): the best subspace for the keys and values of a
group of heads, found on calibration text.

Instead of t vectors, a group of t heads keeps one vector of the width of a head: the projection of its
concatenated keys (values) onto the first directions of their singular value decomposition. This is a fixed
change of the model: prompt, drafts and committed text pass through it alike. The paper's optional fine-tuning
is not implemented.
"""

import torch

from decoders.memory import calibration
from decoders.memory.policy import NUMBER, Policy, Reading
from decoders.refusal import Refusal


def basis(x: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of vectors x [..., T, w]: the first `width` right singular vectors [..., w, width], and the share of
    the energy [..., w] that the first 1, 2, ... hold.
    """
    x = x.double()
    values, vectors = torch.linalg.eigh(x.mT @ x)
    energy = values.flip(-1).clamp(min=0).cumsum(-1)
    return vectors.flip(-1)[..., :width], energy / energy[..., -1:].clamp(min=torch.finfo(x.dtype).tiny)


def pooling(group: int, width: int) -> torch.Tensor:
    """The usual method, for comparison: the basis [t D, D] that keeps the mean of the heads."""
    return torch.eye(width, dtype=torch.float64).repeat(group, 1) / group**0.5


def folded_values(
    w_v: torch.Tensor, w_o: torch.Tensor, psi: torch.Tensor, heads: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The value and output weights of the model with shared values: w_v [Hkv D, d] and w_o [d, H D] with psi
    [g, t D, D] folded in: [g D, d] and [d, H D], whose head i reads the shared values of its group.
    """
    groups, wide, width = psi.shape
    share = psi.mT @ w_v.view(groups, wide, -1).to(psi)  # [g, D, d]
    blocks = psi.view(groups, wide // width, width, width).flatten(0, 1)  # [Hkv, D, D]
    blocks = blocks.repeat_interleave(heads // len(blocks), 0)  # [H, D, D]
    out = torch.einsum("dhi,hij->dhj", w_o.view(len(w_o), heads, width).to(psi), blocks)
    return share.flatten(0, 1).to(w_v), out.flatten(1).to(w_o)


def grouped(x: torch.Tensor, groups: int) -> torch.Tensor:
    """Heads [..., Hkv, N, D] as concatenated groups [..., g, N, t D]."""
    *lead, heads, count, width = x.shape
    together = x.reshape(*lead, groups, heads // groups, count, width).transpose(-3, -2)
    return together.reshape(*lead, groups, count, -1)


def apart(x: torch.Tensor, heads: int) -> torch.Tensor:
    """The inverse of `grouped`."""
    *lead, groups, count, wide = x.shape
    split = x.reshape(*lead, groups, count, heads // groups, -1).transpose(-3, -2)
    return split.reshape(*lead, heads, count, -1)


class KvSvd(Policy):
    """`memory_heads` is g. With the route "pre" keys are projected without their rotation, and rotated on
    read.
    """

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        heads = shape.kv_heads
        self.groups = parameters["memory_heads"] or max(1, heads // 2)
        if self.groups > heads or heads % self.groups:
            fitting = ", ".join(str(g) for g in range(1, heads + 1) if heads % g == 0)
            raise Refusal(
                f"This model has {heads} KV heads; memory_heads must be one of {fitting}, or 0 for half of "
                f"them, not {self.groups}."
            )
        self.pre = parameters["memory_route"] == "pre"
        if self.pre and shape.rotary is None:
            raise Refusal("The route pre needs a model with rotary positions; choose memory_route post.")
        self.maps = self.energy = None
        if self.groups < heads:
            keys, values = calibration.measured(shape.model)  # [L, Hkv, B, T, D]
            if self.pre:
                keys = shape.rotary.turn(keys, -torch.arange(keys.shape[3], device=keys.device))
            both = torch.stack([keys, values]).flatten(3, 4)  # [2, L, Hkv, T, D]
            vectors, self.energy = basis(grouped(both, self.groups), shape.width)
            self.maps = (vectors @ vectors.mT).to(both)  # [2, L, g, t D, t D]: project and expand

    def edit(self, layer: int, reading: Reading, pool: torch.Tensor) -> bool:
        if self.maps is None:
            return False
        new = pool[:, :, reading.write]  # [2, Hkv, N, D]
        turn, rows = self.shape.rotary and self.shape.rotary.turn, reading.rows
        keys = turn(new[0], -rows) if self.pre else new[0]
        shared = grouped(torch.stack([keys, new[1]]), self.groups) @ self.maps[:, layer]
        keys, values = apart(shared, new.shape[1])
        pool[:, :, reading.write] = torch.stack([turn(keys, rows) if self.pre else keys, values])
        return True

    def kept_bytes(self, count: int) -> float:
        return count * self.shape.layers * 2 * self.groups * self.shape.width * NUMBER

    def states(self, count: int) -> list[list[str]]:
        return [["full" if self.maps is None else "projected"] * count]


make = KvSvd
