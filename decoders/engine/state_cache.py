"""The states of one model's layers that keep no keys and values, beside the KV slots of those that do.

Mamba, gated delta nets and short convolutions carry a state along the text; in hybrids, other layers attend.
A KV slot stands for a node of a tree here too, so the states after a node are kept under its slot and are
dropped with it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F

from decoders.engine.kv_cache import SlotCache

BEGINNING = -1  # in place of a slot: before the first token, where no layer has a state


@dataclass(frozen=True)
class Stretch:
    """Rows of a forward that one call of a layer reads: B texts side by side, T tokens of each."""

    rows: list[int]  # [B × T] those of one text after those of another
    parents: list[int]  # [B] the slots of the nodes before them
    kept: list[int]  # [B] the slots of their last nodes, whose states are kept


@dataclass
class LayerState:
    """What one layer carries from token to token: numbered tensors [B, ...], none at the beginning."""

    convolved: dict[int, torch.Tensor] = field(default_factory=dict)  # the last inputs of a convolution
    recurrent: dict[int, torch.Tensor] = field(default_factory=dict)

    def row(self, at: int) -> "LayerState":
        """The state of one of the B texts."""
        return self._each(lambda tensor: tensor[at : at + 1])

    def empty(self) -> "LayerState":
        """The state at the beginning, as tensors of the same shape."""
        return self._each(torch.zeros_like)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "LayerState":
        parts = (self.convolved, self.recurrent)
        return LayerState(*({key: change(tensor) for key, tensor in part.items()} for part in parts))


class StateCache(SlotCache):
    """KV slots, and under some of them the states [1, ...] of all layers after that node. When all states
    take more than `budget` bytes, those used least recently are dropped.

    place: layer with attention -> index of its keys and values in the pool; grows as layers are met.
    """

    def __init__(self, limit: int, budget: int, place: dict[int, int]):
        super().__init__(layers=max(1, len(place)), limit=limit)
        self.budget, self.place = budget, place
        self.states: OrderedDict[int, dict[int, LayerState]] = OrderedDict()  # slot -> layer -> state
        self.stretches: list[Stretch] = []  # of the next forward; none comes before one that it continues
        self.parents: list[int] = []  # of the stretch that is read
        self.now: dict[int, LayerState] = {}  # layer -> its states while that stretch is read

    def has_state(self, slot: int) -> bool:
        """Whether the states after a node are kept."""
        return slot == BEGINNING or slot in self.states

    def reading(self, read: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """The forward of a layer, for rows [1, N, d] of a tree: `read` is called once per stretch."""

        def along(hidden_states: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
            options = {key: value for key, value in options.items() if key != "attention_mask"}  # of padding
            out = torch.empty_like(hidden_states)
            for stretch in self.stretches:
                self.parents, self.now = stretch.parents, {}
                rows = hidden_states[0, stretch.rows].unflatten(0, (len(stretch.parents), -1))
                out[0, stretch.rows] = read(rows, *args, **options).flatten(0, 1)
                for at, slot in enumerate(stretch.kept):
                    self.states.setdefault(slot, {})
                    self.states[slot].update({layer: state.row(at) for layer, state in self.now.items()})
            return out

        return along

    def shrink(self) -> None:
        """Drops states beyond the budget, but none that the last forward made."""
        new = {slot for stretch in self.stretches for slot in stretch.kept}
        for slot in new:
            self.states.move_to_end(slot)
        newest = next(reversed(self.states.values()), {})
        tensors = [t for s in newest.values() for part in (s.convolved, s.recurrent) for t in part.values()]
        fitting = self.budget // max(1, sum(t.numel() * t.element_size() for t in tensors))
        while len(self.states) > max(fitting, len(new)):
            self.states.popitem(last=False)

    def drop(self, slots: list[int]) -> None:
        """Drops the states under these slots."""
        for slot in slots:
            self.states.pop(slot, None)

    def give(self, slots: list[int]) -> None:
        """Frees slots, with the states under them."""
        self.drop(slots)
        super().give(slots)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `SlotCache.update`, for a layer of the model."""
        at = self.place.setdefault(layer_idx, len(self.place))
        if self.storage and at == len(self.storage):
            self.storage.append(torch.zeros_like(self.storage[0]))
            self.pool = None
        return super().update(key_states, value_states, at, *args, **kwargs)

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        """The last inputs of a layer's convolution, None at the beginning."""
        return self._state(layer_idx).convolved.get(state_idx)

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        """A layer's recurrent state, None at the beginning."""
        return self._state(layer_idx).recurrent.get(state_idx)

    def update_conv_state(
        self,
        conv_states: torch.Tensor,
        layer_idx: int,
        state_idx: int = 0,
        conv_kernel_size: int | None = None,
        **kwargs: Any,
    ) -> torch.Tensor:
        """Adds inputs [B, d, T] of a convolution; returns them after those that were kept, or padded."""
        kept = self._state(layer_idx).convolved
        if (before := kept.get(state_idx)) is None:
            size = conv_kernel_size or conv_states.shape[-1]
            whole = F.pad(conv_states, (max(0, size - conv_states.shape[-1]), 0))
        else:
            size, whole = before.shape[-1], torch.cat([before, conv_states], dim=-1)
        kept[state_idx] = whole[..., -size:].clone()
        return whole

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **kwargs: Any
    ) -> torch.Tensor:
        """Replaces a layer's recurrent state."""
        self._state(layer_idx).recurrent[state_idx] = recurrent_states
        return recurrent_states

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:
        """Whether what is read now continues a text."""
        return any(slot != BEGINNING for slot in self.parents)

    def is_recording_past(self, layer_idx: int) -> bool:
        return False

    def _state(self, layer: int) -> LayerState:
        """The states of one layer before the stretch that is read, to be changed in place."""
        if layer not in self.now:
            self.now[layer] = self._gathered(layer)
        return self.now[layer]

    def _gathered(self, layer: int) -> LayerState:
        """Copies of the states of one layer at `parents`, side by side; zeros are those of the beginning."""
        known = {slot: self.states[slot][layer] for slot in self.parents if slot != BEGINNING}
        if not known:
            return LayerState()
        one = next(iter(known.values()))
        rows = [known.get(slot, one.empty()) for slot in self.parents]
        return LayerState(
            {key: torch.cat([row.convolved[key] for row in rows]) for key in one.convolved},
            {key: torch.cat([row.recurrent[key] for row in rows]) for key in one.recurrent},
        )
