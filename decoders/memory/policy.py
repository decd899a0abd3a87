"""The interface of a memory: it reads a forward's keys and values, and compresses those of the committed
text.

The rule of all policies: only committed positions may be compressed or evicted; drafts stay exact until
commit. A policy rewrites the engine's working copy: attention reads the decoded form of the compressed keys
and values, and `kept_bytes` counts the bytes of the compressed form. The working copy itself does not shrink.
"""

from dataclasses import dataclass
from typing import Any

import torch

from decoders.memory.attention import dense
from decoders.memory.rotary import Rotary

NUMBER = 2  # bytes of a number that is stored unchanged: all counts are for caches in 16 bits
HIDDEN = -1e30  # added to a logit: nothing is left of it in a softmax
STATES = {  # of a place in a layer, as shown
    "full": "as it is",
    "sink": "first token, kept for all",
    "quantised": "in few bits",
    "pruned_channels": "keys without some channels",
    "projected": "in a shared subspace",
    "clustered": "stands for a cluster",
    "evicted": "no longer seen",
}


@dataclass(frozen=True)
class Shape:
    """What a policy knows of the model."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    scaling: float
    rotary: Rotary | None
    device: torch.device
    model: torch.nn.Module | None = None  # for policies that measure it first
    learned: Any = None  # what was trained for the policy on this model, see `Policy.learned`

    @property
    def slot_bytes(self) -> int:
        """Of one place, keys and values of all layers."""
        return self.layers * self.layer_bytes

    @property
    def layer_bytes(self) -> int:
        """Of one place in one layer."""
        return 2 * self.kv_heads * self.width * NUMBER


@dataclass
class Slots:
    """The working copy. pool [L, 2, Hkv, S, D]; bias [L, Hkv, S] is added to logits; depths [S] of the tokens
    in the slots.
    """

    pool: torch.Tensor
    bias: torch.Tensor
    depths: torch.Tensor

    def hide(self, layer: int, slots: torch.Tensor) -> None:
        """Nothing reads these slots [K] of a layer any more."""
        self.bias[layer][:, slots] = HIDDEN


@dataclass
class Reading:
    """One forward: N rows at depths `rows` [N], which write `write` and read the slots `columns` [K], or
    [L, Hkv, K] where each head has its own.
    """

    slots: Slots
    rows: torch.Tensor
    write: slice | torch.Tensor
    columns: slice | torch.Tensor
    prompt: torch.Tensor | None  # [T] the prompt's slots, if this forward reads the prompt; its first T rows
    protected: torch.Tensor | None = None  # [T] those of them that never leave
    biased: bool = False  # whether any bias is set

    def bias(self, layer: int) -> torch.Tensor | None:
        """[Hkv, K] of a layer; None if nothing is hidden or weighted."""
        if not self.biased:
            return None
        bias = self.slots.bias[layer]  # [Hkv, S]
        if isinstance(self.columns, slice) or self.columns.ndim == 1:
            return bias[:, self.columns]
        return bias.gather(1, self.columns[layer])

    def depths(self, layer: int) -> torch.Tensor:
        """Depths [1 or Hkv, K] of the columns."""
        if isinstance(self.columns, slice) or self.columns.ndim == 1:
            return self.slots.depths[self.columns][None]
        return self.slots.depths[self.columns[layer]]


class Policy:
    """Keeps everything, like a lane without a memory; the other policies change some of this."""

    needs_rotary = False
    unbounded = False  # whether it reads texts that are longer than the model's context
    alike = True  # whether a place is in one state in all layers

    def __init__(self, shape: Shape, parameters: dict[str, Any]):
        self.shape, self.parameters = shape, parameters

    @staticmethod
    def learned(model: Any, parameters: dict[str, Any]) -> Any:
        """What was trained for the policy on a loaded model, None if it needs nothing. Raises Refusal with
        one sentence if nothing was trained for this model.
        """

    def attend(
        self,
        layer: int,
        reading: Reading,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Outputs [1, H, N, D]; q [1, H, N, D], k and v [1, Hkv, K, D], mask [1, 1, N, K] or None."""
        return dense(q, k, v, mask, reading.bias(layer), self.shape.scaling)

    def edit(self, layer: int, reading: Reading, pool: torch.Tensor) -> bool:
        """Changes the keys and values that a layer has just written, in its part [2, Hkv, S, D] of the pool;
        returns whether it changed any.
        """
        return False

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        """Compresses committed places, whose slots are `places` [n], first to last. Called after each commit,
        and after the prompt.
        """

    def kept_bytes(self, count: int) -> float:
        """Bytes that `count` committed places take in the compressed form."""
        return count * self.shape.slot_bytes

    def states(self, count: int) -> list[list[str]]:
        """One row of `count` states for all layers where they are alike, else a row per layer."""
        return [["full"] * count]
