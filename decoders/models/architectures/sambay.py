"""SambaY: YOCO in which every second upper layer reads no cache but is a gated memory unit (GMU), which
reuses a lower recurrent layer's readout of the same token (Decoder-Hybrid-Decoder, Ren et al. 2025, section
2).

Simplified: gated retention in place of the paper's Mamba.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import Attention, Block, Retention, Stack, State
from decoders.models.architectures.yoco import CrossAttention, Shared

PAPERS = ("decoder-hybrid-decoder-architecture-for-efficient-reasoning",)


class MemoryUnit(nn.Module):
    """y = W_2 (silu(W_1 x) * m), with m the shared readout of the same token; it keeps no state."""

    def __init__(self, width: int, memory: int):
        super().__init__()
        self.into = nn.Linear(width, memory, bias=False)
        self.o = nn.Linear(memory, width, bias=False)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, start: int) -> tuple[torch.Tensor, None]:
        return self.o(F.silu(self.into(x)) * memory), None


class SambaYConfig(ArchitectureConfig):
    """num_hidden_layers is divisible by four; memory_units: False puts cross-attention in their place."""

    model_type = "tiny_sambay"
    window: int = 32
    memory_units: bool = True


class SambaY(Architecture):
    """L layers, h = L / 2: below h, retention and sliding windows alternate; layer h is a retention that
    shares its readout; layer h + 1 is full attention that shares its keys and values; above, memory units and
    cross-attention alternate.
    """

    config_class = SambaYConfig

    def build(self, config: SambaYConfig) -> None:
        width, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
        kv, half = config.num_key_value_heads, config.num_hidden_layers // 2
        mixers = [
            Attention(width, heads, kv, config.window) if i % 2 else Retention(width, heads)
            for i in range(half)
        ]
        self.lower = Stack([Block(width, inner, mixer) for mixer in mixers])
        self.publisher = Block(width, inner, Retention(width, heads, 2 * width))
        self.bridge = Shared(width, heads, kv)
        self.full = Block(width, inner, CrossAttention(width, heads))  # over the shared keys and values
        units = [config.memory_units and i % 2 == 0 for i in range(half - 2)]
        self.upper = nn.ModuleList(
            Block(width, inner, MemoryUnit(width, 2 * width) if unit else CrossAttention(width, heads))
            for unit in units
        )

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`. With last_only, layers above the shared keys and values run on the last
        token alone.
        """
        start, lower, matrix, shared = state or (0, None, None, None)
        x, lower = self.lower(self.embed(ids), lower, start)
        seen = self.publisher.norm(x)
        memory, matrix = self.publisher.mixer.readout(seen, matrix, start)
        x = self.publisher.fed(x + self.publisher.mixer.gated(seen, memory))
        shared = self.bridge(x, shared, start)
        end = start + ids.shape[1]
        if last_only:
            x, memory = x[:, -1:], memory[:, -1:]
        for block in (self.full, *self.upper):
            given = memory if isinstance(block.mixer, MemoryUnit) else shared
            x, _ = block(x, given, end - x.shape[1])
        return x, (end, lower, matrix, shared)


def read_per_token(tokens: int, layers: int, row: int, kind: str) -> int:
    """How many numbers of the growing cache a model of one kind (`plain`, `yoco` or `sambay`) reads per
    generated token: in rows of 2 n_kv d_h numbers, L n, L/2 n and L/4 n (one full layer, and L/4 - 1 above
    it).
    """
    return tokens * row * layers // {"plain": 1, "yoco": 2, "sambay": 4}[kind]


MODEL = SambaY
