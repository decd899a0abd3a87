"""The KV slots of one model: a pool of numbered slots, and the Cache object through which transformers reads
and writes it.

Keys include their position (rotary or learned), so a token's slot may be anywhere in the pool; the caller's
mask says which slots a row may see.
"""

import heapq
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache

from decoders.limits import MEMORY_VARIABLE
from decoders.refusal import Refusal

if TYPE_CHECKING:
    from decoders.engine.padded_attention import Padded

UNKNOWN_BYTES = 2 * 2**30  # of a pool where the system does not say how much memory is free
# (layer, queries [1, H, N, D], keys and values [1, Hkv, K, D], mask [1, 1, N, K] or None) -> [1, H, N, D]
Attend = Callable[
    [int, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None],
    torch.Tensor,
]

WITHOUT_KEYS = {"linear_attention", "conv", "moe", "mlp"}  # kinds of layers that keep a state, or nothing


class OutOfSlots(RuntimeError):
    """No KV slot is free; the message is what the user reads."""


@dataclass(frozen=True)
class Columns:
    """Which slots a forward writes and reads, and which of those each of its N rows sees."""

    write: slice | torch.Tensor  # the slots of its N tokens
    # all slots that they may see, perhaps with others in between; [L, H, K] if layers and heads differ
    read: slice | torch.Tensor
    count: int  # K, the number of slots read
    # additive [1, 1, N, K], None if nothing is masked; one per kind of layer in models that mix kinds
    mask: torch.Tensor | dict[str, torch.Tensor] | None
    parts: tuple["Padded", ...] = ()  # of a joint forward whose requests attend apart; then `read` is empty


class SlotCache(Cache):
    """KV pool whose slots are allocated by `take` and freed by `give`; grows by doubling up to `limit`.

    Keys and values of one width are two tensors [2, H, S, D] of a layer; of different widths, as in latent
    attention, they lie side by side: [1, H, S, D + D'].
    """

    def __init__(self, layers: int, limit: int):
        super().__init__(layers=[])
        self.layer_count, self.limit = layers, limit
        self.free: list[int] = []  # heap of freed slots
        self.fresh = 0  # slots from here on have never been used
        self.pool: torch.Tensor | None = None  # [L, 2, H, S, D] where all layers have one shape
        # per layer [2, H, S, D] or [1, H, S, D + D']: views of the pool, or tensors of their own
        self.storage: list[torch.Tensor] = []
        self.key_widths: dict[int, int] = {}  # layer -> D, where the width of values is another one
        self.index_keys: dict[int, torch.Tensor] = {}  # layer -> [S, D], what its indexer chooses keys by
        self.write: slice | torch.Tensor = slice(0, 0)  # as in `Columns`, for the next forward
        self.read: slice | torch.Tensor = slice(0, 0)
        self.read_count = 0
        self.parts: tuple[Padded, ...] = ()  # as in `Columns`, for the next forward
        self.attend: Attend | None = None  # replaces the usual attention, see decoders/memory

    @property
    def used(self) -> int:
        """Slots in use."""
        return self.fresh - len(self.free)

    def take(self, count: int) -> list[int]:
        """Allocates the `count` lowest free slots, ascending. Raises OutOfSlots, allocating none."""
        if self.used + count > self.limit:
            raise OutOfSlots(
                f"No space is left for {count} more tokens: all {self.limit:,} KV slots are taken. "
                "Use a shorter prompt, fewer new tokens, a smaller tree or fewer lanes, or start with a "
                "larger --kv-memory."
            )
        slots = [heapq.heappop(self.free) for _ in range(min(count, len(self.free)))]
        new = count - len(slots)
        slots += range(self.fresh, self.fresh + new)
        self.fresh += new
        return slots

    def give(self, slots: list[int]) -> None:
        """Frees slots for later use."""
        for slot in slots:
            heapq.heappush(self.free, slot)
        if len(self.free) == self.fresh:
            self.free, self.fresh = [], 0

    def point(self, columns: Columns) -> None:
        """Sets where the next forward writes and reads."""
        self.write, self.read, self.read_count = columns.write, columns.read, columns.count
        self.parts = columns.parts
        if self.storage and self.storage[0].shape[2] < self.fresh:
            self._grow()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `put`, for separate keys [1, H, N, D] and values [1, H, N, D']."""
        width = key_states.shape[-1]
        if width == value_states.shape[-1]:
            return self.put(torch.cat([key_states, value_states]), layer_idx)
        self.key_widths[layer_idx] = width
        return self.put(torch.cat([key_states, value_states], dim=-1), layer_idx)

    def put(self, both: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes keys and values of one layer, [2, H, N, D] or [1, H, N, D + D'], to the slots `write`;
        returns `seen(layer)`.
        """
        if not self.storage:
            self._allocate(both)
        store = self.storage[layer]
        if (*store.shape[:2], store.shape[3]) != (*both.shape[:2], both.shape[3]):
            store = self._own(layer, both)
        if isinstance(self.write, slice):
            store[:, :, self.write] = both
        else:
            store.index_copy_(2, self.write, both)
        return self.seen(layer)

    def update_indexer(self, indexer_key_states: torch.Tensor, layer_idx: int) -> torch.Tensor:
        """Writes the index keys [1, N, D] of one layer to the slots `write`; returns those at the slots
        `read`, [1, K, D].
        """
        new = indexer_key_states[0]
        if layer_idx not in self.index_keys:
            size = self.slots or self._first_size()
            self.index_keys[layer_idx] = new.new_zeros(size, new.shape[-1])
        self.index_keys[layer_idx][self.write] = new
        return self.index_keys[layer_idx][self.read][None]

    def seen(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys [1, H, K, D] and values [1, H, K, D'] of one layer at the slots `read`."""
        store = self.storage[layer]
        if isinstance(self.read, slice):
            seen = store[:, :, self.read]
        elif self.read.ndim == 3:
            at = self.read[layer][None, :, :, None]
            seen = store.gather(2, at.expand(len(store), -1, -1, store.shape[3]))
        else:
            seen = store.index_select(2, self.read)
        if (width := self.key_widths.get(layer)) is not None:
            return seen[..., :width], seen[..., width:]
        return seen[0:1], seen[1:2]

    def keys(self, slots: slice | torch.Tensor, queries: torch.Tensor) -> torch.Tensor | None:
        """The keys [L, H, K, D] at slots [K] that queries [L, Hq, N, D] of all layers were compared with.
        None where layers have several shapes or no keys of their own, or keep latents, from which keys are
        made.
        """
        if self.pool is None or len(self.pool) != len(queries):
            return None
        keys = self.pool[:, 0, ..., : self.key_widths.get(0)]
        latents = self.key_widths and keys.shape[1] == 1
        if latents or keys.shape[-1] != queries.shape[-1]:
            return None
        return keys[:, :, slots] if isinstance(slots, slice) else keys.index_select(2, slots)

    def _allocate(self, like: torch.Tensor) -> None:
        shape = (self.layer_count, *like.shape[:2], self._first_size(), like.shape[3])
        self.pool = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.storage = list(self.pool)

    def _first_size(self) -> int:
        return min(self.limit, max(256, 1 << (self.fresh - 1).bit_length()))

    def _own(self, layer: int, like: torch.Tensor) -> torch.Tensor:
        """Allocates separate storage for a layer whose heads differ from the first layer's."""
        self.pool = None
        shape = (*like.shape[:2], self.slots, like.shape[3])
        self.storage[layer] = torch.zeros(shape, dtype=like.dtype, device=like.device)
        return self.storage[layer]

    def reserve(self) -> None:
        """Allocates the memory for all slots up to `limit` at once; a forward must have run before."""
        self._grow(self.limit)

    def _grow(self, size: int | None = None) -> None:
        size = size or min(self.limit, max(2 * self.slots, self.fresh))
        for old in (*self.storage, *self.index_keys.values()):
            if old.is_cuda:  # its own stream must not reuse the memory while this one copies
                old.record_stream(torch.cuda.current_stream(old.device))
        pad = torch.nn.functional.pad
        if self.pool is not None:
            self.pool = pad(self.pool, (0, 0, 0, size - self.pool.shape[3]))
            self.storage = list(self.pool)
        else:
            self.storage = [pad(s, (0, 0, 0, size - s.shape[2])) for s in self.storage]
        self.index_keys = {at: pad(s, (0, 0, 0, size - len(s))) for at, s in self.index_keys.items()}

    @property
    def slots(self) -> int:
        """The slots for which memory is allocated."""
        return self.storage[0].shape[2] if self.storage else 0

    @property
    def nbytes(self) -> int:
        """Bytes of its tensors at their present size."""
        return sum(tensor.nbytes for tensor in (*self.storage, *self.index_keys.values()))

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0 if isinstance(self.write, slice) and self.write.stop == 0 else self.read_count

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return self.read_count, 0

    @property
    def is_sliding(self) -> list[bool]:
        return [False] * self.layer_count

    @property
    def is_compileable(self) -> bool:
        return False

    def __len__(self) -> int:
        return self.layer_count


class ReadOnly(Cache):
    """Keys and values of an earlier forward, which `seen(layer)` returns. A forward with this cache attends
    only to those and stores none of its own.
    """

    def __init__(self, seen: Callable[[int], tuple[torch.Tensor, torch.Tensor]]):
        super().__init__(layers=[])
        self.seen = seen

    @classmethod
    def of(cls, left: Cache) -> "ReadOnly":
        """The keys and values in one of transformers' own caches."""
        return cls(lambda layer: (left.layers[layer].keys, left.layers[layer].values))

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns `seen` and ignores the new keys and values."""
        return self.seen(layer_idx)


def field_of(config: PreTrainedConfig, *names: str) -> Any:
    """The first of these fields that a config has and that is neither None nor 0; None without any."""
    return next((value for name in names if (value := getattr(config, name, None))), None)


def context_of(config: PreTrainedConfig) -> tuple[int, str | None]:
    """How many tokens a text may have, for a text config, and a note if that is fewer than the model's limit.

    Beyond its original context, longrope (Phi-3.5, Phi-4-mini) rescales the positions of the whole text, so
    the keys before would have to be made again.
    """
    most = field_of(config, "max_position_embeddings")
    most = most if most is not None and most > 0 else 1 << 30
    rope = field_of(config, "rope_parameters") or {}
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    original = [p["original_max_position_embeddings"] for p in parts if p.get("rope_type") == "longrope"]
    if not original or min(original) >= most:
        return most, None
    return min(original), (
        f"Beyond {min(original):,} tokens this model rescales the positions of the whole text (longrope), "
        "which a cache of keys cannot follow: texts end there."
    )


def slot_bytes(config: PreTrainedConfig, itemsize: int) -> int:
    """Bytes of one KV slot (keys and values of all layers) for a text config and the bytes of one number."""
    layers = layer_configs(config)[: layers_with_keys(config)]
    kinds = field_of(config, "layer_types") or ["full_attention"] * len(layers)
    indexers = field_of(config, "indexer_types") or ["full"] * len(layers)
    total = 0
    for layer, kind, indexer in zip(layers, kinds, indexers, strict=False):
        if kind in WITHOUT_KEYS:
            continue
        total += slot_numbers(layer)
        if kind == "indexed_attention" and indexer != "shared":
            total += layer.index_head_dim
        elif kind == "sliding_attention" and config.model_type == "mimo_v2_flash":
            total += slot_numbers(layer)  # twice as many heads, which its config does not say
    return total * itemsize


def layer_configs(config: PreTrainedConfig) -> list[PreTrainedConfig]:
    """For each layer a config with its own fields; older versions of transformers give layers none."""
    return field_of(config, "per_layer_config") or [config] * config.num_hidden_layers


def slot_numbers(layer: PreTrainedConfig) -> int:
    """How many numbers one layer keeps of a token. layer: a config with this layer's own fields."""
    if rank := field_of(layer, "kv_lora_rank"):  # latents, of which keys and values are made when read
        return rank + layer.qk_rope_head_dim
    width = query_width(layer)
    return key_heads(layer) * (width + (field_of(layer, "v_head_dim") or width))


def key_heads(layer: PreTrainedConfig) -> int:
    """The heads of keys and values, by a layer's own fields."""
    if field_of(layer, "multi_query") and not field_of(layer, "new_decoder_architecture"):
        return 1  # Falcon, GPT BigCode
    return field_of(layer, "num_key_value_heads", "num_kv_heads") or layer.num_attention_heads


def query_width(layer: PreTrainedConfig) -> int:
    """The width of one head's query, by a layer's own fields."""
    return field_of(layer, "qk_head_dim", "head_dim") or layer.hidden_size // layer.num_attention_heads


def layers_with_keys(config: PreTrainedConfig) -> int:
    """How many of the first layers keep keys and values; the others read theirs (Gemma 3n, Gemma 4)."""
    return config.num_hidden_layers - (field_of(config, "num_kv_shared_layers") or 0)


def free_bytes(device: str) -> int | None:
    """Free memory on `device` in bytes; None if the system does not say."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    available = []
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        available += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        try:
            available.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    try:  # a container's limit
        limit, used = (
            int(Path(f"/sys/fs/cgroup/memory.{name}").read_text("utf-8")) for name in ("max", "current")
        )
        available.append(limit - used)
    except (OSError, ValueError):
        pass
    return min(available, default=None)


def pool_bytes(device: str) -> int:
    """Bytes that the pool of one model may grow to: what the environment variable EXPLORER_KV_GB says, else a
    quarter of the memory that is free now. Raises Refusal with one sentence for a variable that is no size.
    """
    if given := os.environ.get(MEMORY_VARIABLE):
        try:
            size = float(given)
        except ValueError:
            size = 0.0
        if not 0.0 < size < 1e6:
            raise Refusal(f"{MEMORY_VARIABLE} must be a number of gigabytes, such as 8, not {given!r}.")
        return int(size * 1e9)
    free = free_bytes(device)
    return UNKNOWN_BYTES if free is None else free // 4


def is_recurrent(layer: torch.nn.Module) -> bool:
    """Whether a layer asks transformers' cache for a state in place of keys and values."""
    return "get_conv_state" in inspect.unwrap(type(layer).forward).__code__.co_names
