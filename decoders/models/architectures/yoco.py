"""YOCO: the lower layers need constant memory and compute one set of keys and values, which all upper layers
read (You Only Cache Once, Sun et al. 2024, section 3).
"""

import torch
from torch import nn

from decoders.models.architectures.causal import Architecture, ArchitectureConfig
from decoders.models.architectures.layers import (
    Attention,
    Block,
    Retention,
    Stack,
    State,
    appended,
    attend,
    merge_heads,
    rotated,
    split_heads,
    visible,
)

PAPERS = ("you-only-cache-once",)


class Shared(nn.Module):
    """The shared set of keys and values, computed from the lower half's output (equation 2)."""

    def __init__(self, width: int, heads: int, kv_heads: int, rotary: bool = True):
        super().__init__()
        self.heads, self.rotary = kv_heads, rotary
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.k, self.v = (nn.Linear(width, width // heads * kv_heads, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, past: State, start: int) -> State:
        """All keys and values [B, H, S, D] up to the last of x [B, T, d]."""
        x = self.norm(x)
        k, v = split_heads(self.k(x), self.heads), split_heads(self.v(x), self.heads)
        return appended(past, rotated(k, start) if self.rotary else k, v)


class CrossAttention(nn.Module):
    """Causal attention of a layer's own queries over the shared keys and values; keeps no state."""

    def __init__(self, width: int, heads: int, rotary: bool = True):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, shared: State, start: int) -> tuple[torch.Tensor, None]:
        q = split_heads(self.q(x), self.heads)
        seen = visible(x.shape[1], shared[0].shape[2], None, x.device)
        return self.o(merge_heads(attend(rotated(q, start) if self.rotary else q, *shared, seen))), None


class YocoConfig(ArchitectureConfig):
    """lower: the lower half's token mixer, `window` (sliding attention over `window` tokens) or
    `retention`.
    """

    model_type = "tiny_yoco"
    window: int = 32
    lower: str = "window"


class Yoco(Architecture):
    """num_hidden_layers: of both halves together."""

    config_class = YocoConfig

    def build(self, config: YocoConfig) -> None:
        width, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
        half = config.num_hidden_layers // 2
        mixers = [
            Retention(width, heads)
            if config.lower == "retention"
            else Attention(width, heads, config.num_key_value_heads, config.window)
            for _ in range(half)
        ]
        self.lower = Stack([Block(width, inner, mixer) for mixer in mixers])
        self.bridge = Shared(width, heads, config.num_key_value_heads)
        self.upper = nn.ModuleList(Block(width, inner, CrossAttention(width, heads)) for _ in range(half))

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """As `Architecture.read`. With last_only the upper half runs on the last token alone, since it never
        reads its own states of other tokens.
        """
        start, lower, shared = state or (0, None, None)
        x, lower = self.lower(self.embed(ids), lower, start)
        shared = self.bridge(x, shared, start)
        end = start + ids.shape[1]
        if last_only:
            x = x[:, -1:]
        for block in self.upper:
            x, _ = block(x, shared, end - x.shape[1])
        return x, (end, lower, shared)


def kept_rows(tokens: int, layers: int, window: int) -> int:
    """Rows of keys and values that are kept after n tokens: n + min(W, n) L / 2, against n L in a plain
    model.
    """
    return tokens + min(window, tokens) * layers // 2


MODEL = Yoco
