"""The decoding side of LeanK (2025): a fixed 0/1 mask per layer, KV head and channel; the keys of middle
tokens lose the others.

The first and the newest tokens keep all channels; tokens join the middle in blocks. A head that keeps no
channel drops the middle's keys and values. The mask was learned for a model
(decoders/heads/scorers/key_mask.py). Two other masks need no training: one by the mean size of each channel's
keys, and a random one.
"""

import math
from typing import Any

import torch

from decoders.memory import calibration
from decoders.memory.policy import NUMBER, Policy, Shape, Slots
from decoders.refusal import Refusal


def kept_channels(alphas: torch.Tensor, prune: float, align: int) -> torch.Tensor:
    """Which channels of alphas [L, Hkv, D] stay: per head the largest ones, as many as are above the quantile
    `prune` of all alphas, rounded to a multiple of `align`, halves up.
    """
    threshold = alphas.float().flatten().quantile(prune)
    above = (alphas > threshold).sum(-1)  # [L, Hkv]
    counts = torch.floor(above / align + 0.5).long().mul(align).clamp(max=alphas.shape[-1])
    return largest(alphas, counts)


def largest(scores: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """A mask [L, Hkv, D] of the channels with the highest scores [L, Hkv, D], counts [L, Hkv] per head."""
    ranks = scores.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return ranks < counts[..., None]


LEARNED, WEIGHTED = "learned", "learned, times alpha"  # the second as in training


def alphas_of(shape: Shape, source: str) -> torch.Tensor:
    """How much each channel matters, [L, Hkv, D]: as learned, by the mean size of its keys, or at random."""
    size = (shape.layers, shape.kv_heads, shape.width)
    if source in (LEARNED, WEIGHTED):
        return shape.learned.alphas.detach().float().to(shape.device)
    if source == "random":
        return torch.rand(size, generator=torch.Generator().manual_seed(0)).to(shape.device)
    return calibration.measured(shape.model)[0].float().abs().mean((2, 3))


class LeanK(Policy):
    """`memory_prune` is the share of all channels below the threshold; the channels kept after rounding are
    counted.
    """

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        prune, source = parameters["memory_prune"], parameters["memory_mask"]
        alphas = alphas_of(shape, source)  # [L, Hkv, D]
        mask = kept_channels(alphas, prune, parameters["memory_align"])
        self.mask = mask if prune > 0 else torch.ones_like(mask)
        self.factors = self.mask * alphas if source == WEIGHTED else self.mask
        self.sink, self.recent = parameters["memory_sink"], parameters["memory_recent"]
        self.middle = 0  # places after the first ones that have lost channels

    @staticmethod
    def learned(model: Any, parameters: dict[str, Any]) -> Any:
        """The trained alphas of a model; None where the mask takes none. Refusal if there are none."""
        if parameters["memory_mask"] not in (LEARNED, WEIGHTED):
            return None
        if (trained := model.heads.get("leank")) is None:
            raise Refusal(
                f"No mask of LeanK is trained for {model.name!r}; choose llama-tiny, or memory_mask "
                "magnitude."
            )
        return trained

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        block = self.parameters["memory_block"]
        middle = max(0, len(places) - self.sink - self.recent) // block * block
        if middle <= self.middle:
            return
        at = places[self.sink + self.middle : self.sink + middle]
        slots.pool[:, 0, :, at] = slots.pool[:, 0, :, at] * self.factors[:, :, None].to(slots.pool)
        empty = ~self.mask.any(-1)  # [L, Hkv]
        slots.bias[:, :, at] += torch.where(empty, -torch.inf, 0.0).to(slots.bias)[..., None]
        self.middle = middle

    def kept_bytes(self, count: int) -> float:
        """Per head: the keys and values of whole tokens; for middle tokens the kept channels and the values,
        or nothing if the head keeps no channel.
        """
        whole, kept = count - self.middle, self.mask.sum(-1)  # [L, Hkv]
        middle = float(((kept + self.shape.width) * (kept > 0)).sum()) * self.middle
        return (whole * 2 * self.shape.width * math.prod(kept.shape) + middle) * NUMBER

    def states(self, count: int) -> list[list[str]]:
        first = min(self.sink, count)
        state = "full" if bool((self.factors == 1).all()) else "pruned_channels"
        rest = count - first - self.middle
        return [["sink"] * first + [state] * self.middle + ["full"] * rest]


make = LeanK
