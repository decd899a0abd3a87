"""The attention of one forward over a token tree: the slots to write and to read, and the mask.

Each scorer has one `TreeMask`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from transformers import PreTrainedConfig

from decoders.engine.kv_cache import WITHOUT_KEYS, Columns, field_of, layer_configs
from decoders.engine.sparse_kv import View
from decoders.engine.tree import Tree

STRETCH = 1.5  # a slice may be this many times as long as the slots needed; beyond, gathering them is cheaper


@dataclass(frozen=True)
class Horizon:
    """How far back the layers of one kind look: over the last `size` tokens, or, in chunks, to the beginning
    of the token's own chunk of `size`.
    """

    size: int
    chunks: bool = False

    def hides(self, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Which of the columns [K] are too far back for each row [N], by depths: [N, K]."""
        rows, columns = rows[:, None], columns[None]
        return columns < rows - rows % self.size if self.chunks else rows - columns >= self.size


HYBRIDS = {"hybrid": "full_attention", "hybrid_sliding": "sliding_attention"}  # of layers with a state, too
Horizons = dict[str, Horizon | None]  # kind of layer -> its horizon, None for layers that see everything


def horizons_of(config: PreTrainedConfig) -> Horizons:
    """The horizons of a text config's layers. Raises ValueError for kinds of layers that need more than a
    mask, and where layers of one kind have different horizons.
    """
    found: Horizons = {}
    for kind, layer in kinds_with_fields(config):
        horizon = horizon_of(kind, layer)
        if found.setdefault(kind, horizon) != horizon:
            raise ValueError(f"Layers of the kind {kind} have different horizons.")
    return found


def layer_kinds(config: PreTrainedConfig) -> list[str]:
    """The kind of attention of each layer that attends."""
    return [kind for kind, _ in kinds_with_fields(config)]


def kinds_with_fields(config: PreTrainedConfig) -> list[tuple[str, PreTrainedConfig]]:
    """Of each layer that attends, the kind of its attention and a config with its own fields. Where a config
    names no kinds, all layers look back as far as its window, if it has one.
    """
    kinds = field_of(config, "layer_types") or ["sliding_attention"] * config.num_hidden_layers
    pairs = zip(kinds, layer_configs(config), strict=False)
    return [(HYBRIDS.get(kind, kind), layer) for kind, layer in pairs if kind not in WITHOUT_KEYS]


def horizon_of(kind: str, layer: PreTrainedConfig) -> Horizon | None:
    """The horizon of a layer of this kind, by its own fields."""
    match kind:
        case "full_attention" | "indexed_attention":
            return None
        case "sliding_attention":
            size = field_of(layer, "sliding_window")
            return None if size is None else Horizon(size)
        case "chunked_attention":
            return Horizon(layer.attention_chunk_size, chunks=True)
    raise ValueError(f"A tree mask does not serve layers of the kind {kind}.")


class Reader(Protocol):
    """What the mask needs from an engine: device, dtype, and how far its layers look back. nearest: the size
    of the smallest horizon, None if all layers see everything.
    """

    device: torch.device
    dtype: torch.dtype
    horizons: Horizons
    nearest: int | None


class TreeMask:
    """Builds the columns of forwards over one tree. `slot(node)`: the slot of a node that is read or about to
    be.
    """

    def __init__(self, tree: Tree, slot: Callable[[int], int]):
        self.tree, self.slot = tree, slot
        self.nodes: list[int] = []  # the spine: the path that all rows of the last forward shared, root first
        self.slots: list[int] = []  # the slots of the spine
        self.view: View | None = None  # restricts what is seen of the first places; None: all of them are

    def forget(self, node: int) -> None:
        """Must be called before a node's slot is freed."""
        depth = self.tree.depths[node]
        if self.nodes[depth : depth + 1] == [node]:
            del self.nodes[depth:], self.slots[depth:]

    def look_at(self, order: list[int], engine: Reader) -> Columns:
        """The columns of a forward over the nodes `order` (parents first): their slots, those of all their
        ancestors, and the mask, which is None if a single row sees everything that is read.
        """
        tree, slot, inside = self.tree, self.slot, set(order)
        device, dtype = engine.device, engine.dtype
        top = self._common_ancestor(order)
        spine = self._spine_to(top)
        direct: list[tuple[int, int]] = []  # (row, node it sees): itself and ancestors up to one of `order`
        inherited: list[tuple[int, int]] = []  # (row, row of that ancestor, which it sees all of)
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
        listed = [*between, *order]  # the nodes below the spine
        slots = [*spine, *(slot(n) for n in listed)]
        forgets = engine.nearest is not None and max(tree.depths[n] for n in order) >= engine.nearest
        write = as_index([slot(n) for n in order], device)
        read, total, first = self._reads(slots, len(spine), device, in_order=forgets)
        if len(order) == 1 and not forgets and (first is None or total == len(slots)):
            return Columns(write, read, total, None)
        at = np.arange(total) if first is None else np.array(slots) - first  # the column of each slot
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
        """How to read `slots`, the first `spine` of which are the spine's: (slice or index, number of
        columns, first slot). Slots that are close together are read as one slice, with unneeded ones in
        between, since a slice needs no copy. First slot None: the columns are in the order of `slots`, as
        `in_order` requires.
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
        """The mask of each kind of layer, which hides what is beyond its horizon; just the mask if there is a
        single kind.
        """
        depths = torch.tensor(self.tree.depths)
        masks = {}
        for kind, horizon in engine.horizons.items():
            masks[kind] = full
            if horizon is not None:
                far = horizon.hides(depths[order], depths[columns])
                masks[kind] = full.masked_fill(far.to(full.device), torch.finfo(full.dtype).min)
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _spine_to(self, top: int) -> list[int]:
        """The slots from the root down to `top`. Reuses the last result, since the next is often one
        longer.
        """
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
        """The deepest node that is an ancestor of all of `order` but not one of them; -1 if there is none."""
        tree, inside = self.tree, set(order)
        tops = set()
        for node in order:
            above = tree.parents[node]
            while above in inside:
                above = tree.parents[above]
            tops.add(above)
        depths = {node: tree.depths[node] if node >= 0 else -1 for node in tops}
        while len(depths) > 1:  # replace the deepest by their parents
            deepest = max(depths.values())
            for node in [node for node, depth in depths.items() if depth == deepest]:
                del depths[node]
                depths[tree.parents[node]] = deepest - 1
        return next(iter(depths))


def as_index(slots: list[int], device: torch.device) -> slice | torch.Tensor:
    """A slice if `slots` are consecutive, since that needs no copy; else an index tensor."""
    if slots and slots[-1] - slots[0] == len(slots) - 1 and slots == list(range(slots[0], slots[-1] + 1)):
        return slice(slots[0], slots[-1] + 1)
    return torch.from_numpy(np.array(slots, dtype=np.int64)).to(device)  # a quarter of torch.tensor's time
