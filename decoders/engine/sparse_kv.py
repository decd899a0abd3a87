"""Sparse attention over a text: sink, window, and the blocks that match the newest queries, chosen per layer
and head (SpecPV, Tan et al. 2025; Quest, Tang et al. 2024).

Keys keep the positions with which they were computed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class View:
    """What rows see of the first `depth` places of a text; of later places they see all."""

    depth: int
    slots: torch.Tensor  # [L, Hkv, S]
    blocks: torch.Tensor  # [L, Hkv, R], the retrieved blocks


@dataclass(frozen=True)
class Budget:
    """How many blocks of `size` places are seen: the first ones, retrieved ones, and the last ones."""

    size: int
    sink: int
    retrieved: int
    window: int

    def between(self, places: int) -> range:
        """The blocks that can be retrieved in a text of this length; empty if all of it is seen anyway."""
        middle = range(self.sink, -(-places // self.size) - self.window)
        return middle if len(middle) > self.retrieved else range(0)


def larger_end(queries: torch.Tensor, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """SpecPV's score of each block, [..., N, B]: the larger of q.kmax and q.kmin, with kmax and kmin the
    elementwise extremes of the block's keys. It is no bound on q.k.

    queries [..., N, D]; high and low [..., B, D].
    """
    return torch.maximum(queries @ high.mT, queries @ low.mT)


def bound(queries: torch.Tensor, high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """Quest's score of each block: the largest q.k of any key within the extremes. Shapes as in
    `larger_end`.
    """
    return queries.clamp(min=0) @ high.mT + queries.clamp(max=0) @ low.mT


SELECTORS: dict[str, Callable] = {"larger end": larger_end, "bound": bound}


def view(
    queries: torch.Tensor, keys: torch.Tensor, slots: torch.Tensor, budget: Budget, selector: str
) -> View | None:
    """The view of T places with keys [L, Hkv, T, D] in slots [T] that queries [L, H, N, D] choose; None if
    all places are seen.
    """
    middle = budget.between(len(slots))
    if not middle:
        return None
    size, (layers, heads, _, width) = budget.size, keys.shape
    blocks = keys[:, :, middle.start * size : middle.stop * size].unflatten(
        2, (-1, size)
    )  # [L, Hkv, B, size, D]
    grouped = queries.reshape(layers, heads, -1, width)  # [L, Hkv, G N, D]: heads of a group stand together
    scores = SELECTORS[selector](grouped, blocks.amax(3), blocks.amin(3)).mean(2)  # [L, Hkv, B]
    blocks_chosen = scores.topk(budget.retrieved).indices.sort(-1).values + middle.start
    places = (blocks_chosen[..., None] * size + torch.arange(size, device=blocks_chosen.device)).flatten(2)
    ends = torch.tensor(
        [*range(middle.start * size), *range(middle.stop * size, len(slots))], device=blocks_chosen.device
    )
    seen = torch.cat([places, ends.expand(layers, heads, -1)], dim=-1)
    return View(len(slots), slots[seen], blocks_chosen)
