"""What the rows of one forward over a token tree see: the slots to write and to read, and the mask.

Knows a tree's shape and which slot a node has, nothing of what is computed. One scorer has one `Sight`.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from decoders.engine.kv_cache import Columns
from decoders.engine.sparse_kv import View
from decoders.engine.tree import Tree

STRETCH = 1.5  # how many times the slots that are seen may be read before it is cheaper to gather those


class Reader(Protocol):
    """What is asked of an engine: where and in which type it computes, and how far its model looks back
    (`window` tokens in layers with sliding attention, None: everywhere; `mixed`: not in all layers).
    """

    device: torch.device
    dtype: torch.dtype
    window: int | None
    mixed: bool


class TreeMask:
    """`slot(node)` is the slot of a node that is read, or is about to be."""

    def __init__(self, tree: Tree, slot: Callable[[int], int]):
        self.tree, self.slot = tree, slot
        self.nodes: list[int] = []  # the path that all rows of the last forward shared, root first ...
        self.slots: list[int] = []  # ... and its slots
        self.view: View | None = None  # what is seen of the first places; None: all of them

    def forget(self, node: int) -> None:
        """The node's slot is about to be given back."""
        depth = self.tree.depths[node]
        if self.nodes[depth : depth + 1] == [node]:
            del self.nodes[depth:], self.slots[depth:]

    def look_at(self, order: list[int], engine: Reader) -> Columns:
        """The slots of the nodes `order` (parents first) and of all their ancestors, and the mask in the form
        that its model takes, None if one row sees all that is read.
        """
        tree, slot, inside = self.tree, self.slot, set(order)
        device, dtype = engine.device, engine.dtype
        top = self._common_ancestor(order)
        spine = self._spine_to(top)
        direct: list[tuple[int, int]] = []  # (row, node it sees): itself and its ancestors below `top` ...
        inherited: list[tuple[int, int]] = []  # ... up to one of `order`, whose row is then copied
        row_of = {node: row for row, node in enumerate(order)}
        for row, node in enumerate(order):
            direct.append((row, node))
            above = tree.parents[node]
            while above != top and above not in inside:
                direct.append((row, above))
                above = tree.parents[above]
            if above in inside:
                inherited.append((row, row_of[above]))
        between = dict.fromkeys(node for _, node in direct if node not in inside)
        listed = [*between, *order]  # what stands below the spine
        slots = [*spine, *(slot(n) for n in listed)]
        forgets = engine.window is not None and max(tree.depths[n] for n in order) >= engine.window
        write = as_index([slot(n) for n in order], device)
        read, total, first = self._reads(slots, len(spine), device, in_order=forgets)
        if len(order) == 1 and not forgets and (first is None or total == len(slots)):
            return Columns(write, read, total, None)
        at = np.arange(total) if first is None else np.array(slots) - first  # the columns of the slots
        shared = len(at) - len(listed)
        columns = dict(zip(listed, at[shared:].tolist(), strict=True))
        seen = np.zeros((len(order), total), dtype=bool)
        seen[:, at[:shared]] = True
        seen[[row for row, _ in direct], [columns[node] for _, node in direct]] = True
        for row, source in inherited:
            seen[row] |= seen[source]
        mask = torch.zeros((len(order), total), dtype=dtype, device=device)
        mask.masked_fill_(torch.from_numpy(~seen).to(device), torch.finfo(dtype).min)
        mask = mask[None, None]
        if forgets:
            mask = self._windowed(mask, order, [*tree.path(top), *listed], engine)
        return Columns(write, read, total, mask)

    def _reads(
        self, slots: list[int], spine: int, device: torch.device, in_order: bool
    ) -> tuple[slice | torch.Tensor, int, int | None]:
        """What is read of `slots`, the first `spine` of which are those of the spine: where, how many columns
        that are, and the slot of the first one if they are a stretch; else they have the order of `slots`.

        With `in_order` it is no stretch. Else slots that lie close together are read as one, with those
        between them that are of no concern: no copy is needed then.
        """
        if self.view is not None:
            kept = self.view.slots
            new = torch.tensor(slots[min(self.view.depth, spine) :], device=device)
            read = torch.cat([kept, new.expand(*kept.shape[:2], -1)], dim=-1)
            return read, read.shape[-1], None
        first, last = min(slots), max(slots)
        if in_order or last - first >= STRETCH * len(slots):
            return as_index(slots, device), len(slots), None
        return slice(first, last + 1), last + 1 - first, first

    def _windowed(
        self, full: torch.Tensor, order: list[int], columns: list[int], engine: Reader
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """The mask for a model with sliding attention: with the tokens masked that it forgets."""
        depths = torch.tensor(self.tree.depths)
        far = depths[order][:, None] - depths[columns][None] >= engine.window
        sliding = full.masked_fill(far.to(full.device), torch.finfo(full.dtype).min)
        return {"full_attention": full, "sliding_attention": sliding} if engine.mixed else sliding

    def _spine_to(self, top: int) -> list[int]:
        """The slots from the root down to `top`. Keeps the last answer: the next is often one longer."""
        nodes, slots, depths = self.nodes, self.slots, self.tree.depths
        new, node = [], top
        while node >= 0 and not (depths[node] < len(nodes) and nodes[depths[node]] == node):
            new.append(node)
            node = self.tree.parents[node]
        known = depths[node] + 1 if node >= 0 else 0
        nodes[known:] = new[::-1]
        slots[known:] = [self.slot(n) for n in nodes[known:]]
        return slots

    def _common_ancestor(self, order: list[int]) -> int:
        """The deepest evaluated node that is a proper ancestor of all of `order`; -1 if there is none."""
        tree, inside = self.tree, set(order)
        tops = set()
        for node in order:
            above = tree.parents[node]
            while above in inside:
                above = tree.parents[above]
            tops.add(above)
        depths = {node: tree.depths[node] if node >= 0 else -1 for node in tops}
        while len(depths) > 1:  # lift the deepest
            deepest = max(depths.values())
            for node in [node for node, depth in depths.items() if depth == deepest]:
                del depths[node]
                depths[tree.parents[node]] = deepest - 1
        return next(iter(depths))


def as_index(slots: list[int], device: torch.device) -> slice | torch.Tensor:
    """A slice where `slots` are consecutive (no copy is needed then), else an index tensor."""
    if slots and slots[-1] - slots[0] == len(slots) - 1 and slots == list(range(slots[0], slots[-1] + 1)):
        return slice(slots[0], slots[-1] + 1)
    return torch.tensor(slots, device=device)
