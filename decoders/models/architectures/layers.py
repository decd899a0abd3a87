"""Layers that the small architectures share: attention over a growing or sliding cache, gated retention, a
gated feed-forward network, and a plain stack of them.

Each takes inputs [B, T, d] and a state (None at the start), and returns outputs [B, T, d] and the new state.
States are never changed in place, so each branch of a draft tree can keep its own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

ROPE_BASE = 1e4
State = Any  # nested tuples, lists and dicts of tensors


def wide(x: torch.Tensor) -> torch.Tensor:
    """x in at least float32, for sums and exponentials along a text."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[B, T, H * D] -> [B, H, T, D]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """[B, H, T, D] -> [B, T, H * D]."""
    return x.transpose(1, 2).flatten(2)


def rotated(x: torch.Tensor, start: int) -> torch.Tensor:
    """x [B, H, T, D] with rotary positions start, start + 1 ... (Su et al. 2021)."""
    half = x.shape[-1] // 2
    rates = ROPE_BASE ** (-torch.arange(half, device=x.device) / half)
    angles = (start + torch.arange(x.shape[-2], device=x.device))[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def visible(queries: int, keys: int, window: int | None, device: torch.device) -> torch.Tensor:
    """[T, S]: which keys each query sees, with the last query at the last key. window: at most this many
    keys, including its own.
    """
    at = torch.arange(keys - queries, keys, device=device)[:, None]
    behind = at - torch.arange(keys, device=device)
    return (behind >= 0) if window is None else (behind >= 0) & (behind < window)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Softmax attention [B, H, T, D]; query heads share KV heads if there are fewer of these."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k, v))
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return wide(scores).masked_fill(~seen, float("-inf")).softmax(-1).to(v.dtype) @ v


def appended(past: State, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Past keys and values followed by these."""
    return (k, v) if past is None else (torch.cat([past[0], k], 2), torch.cat([past[1], v], 2))


class Attention(nn.Module):
    """Causal attention that keeps keys and values of all tokens, or of the last `window` ones."""

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int | None = None,
        window: int | None = None,
        rotary: bool = True,
    ):
        super().__init__()
        self.heads, self.kv_heads, self.window, self.rotary = heads, kv_heads or heads, window, rotary
        narrow = width // heads * self.kv_heads
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, narrow, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        q, k, v = (
            split_heads(self.q(x), self.heads),
            split_heads(self.k(x), self.kv_heads),
            split_heads(self.v(x), self.kv_heads),
        )
        if self.rotary:
            q, k = rotated(q, start), rotated(k, start)
        k, v = appended(past, k, v)
        seen = visible(x.shape[1], k.shape[2], self.window, x.device)
        y = self.o(merge_heads(attend(q, k, v, seen)))
        if self.window is not None:  # the next token's own key takes one place of the window
            rows = max(k.shape[2] - self.window + 1, 0)
            k, v = k[:, :, rows:], v[:, :, rows:]
        return y, (k, v)


class Retention(nn.Module):
    """Gated retention (YOCO, section 3.1): S_t = gamma_t S_{t-1} + k_t^T v_t, o_t = q_t S_t, with gamma_t =
    sigmoid(x_t w)^(1/16) per head. The state is one matrix per head, whatever the text's length.

    `readout` returns the normalised o_t before its gate, which SambaY reuses in other layers. value_width: of
    all heads together.
    """

    SHARPNESS = 16.0  # the root that keeps gamma close to 1

    def __init__(self, width: int, heads: int, value_width: int | None = None):
        super().__init__()
        self.heads, values = heads, value_width or width
        self.q, self.k = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.v, self.gate = (nn.Linear(width, values, bias=False) for _ in range(2))
        self.decay = nn.Linear(width, heads)
        self.o = nn.Linear(values, width, bias=False)

    def readout(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        """(o [B, T, value width] of all tokens at once, the new state). With L_t = sum of log gamma up to t,
        o_t = exp(L_t) q_t S_0 + sum_{s<=t} exp(L_t - L_s) (q_t k_s) v_s.
        """
        q, k = (rotated(split_heads(m(x), self.heads), start) for m in (self.q, self.k))
        k, v = k * k.shape[-1] ** -0.5, split_heads(self.v(x), self.heads)
        fall = (F.logsigmoid(wide(self.decay(x))) / self.SHARPNESS).transpose(1, 2).cumsum(-1)  # L [B, H, T]
        seen = visible(x.shape[1], x.shape[1], None, x.device)
        weights = (fall[..., :, None] - fall[..., None, :]).masked_fill(~seen, float("-inf")).exp()
        o = ((q @ k.transpose(-1, -2)) * weights) @ wide(v)
        left = (fall[..., -1:] - fall).exp()[..., None]  # each token's weight after decay to the end
        matrix = wide(k * left).transpose(-1, -2) @ wide(v)
        if past is not None:
            o = o + fall.exp()[..., None] * (wide(q) @ past)
            matrix = matrix + fall[..., -1].exp()[..., None, None] * past
        return merge_heads(F.rms_norm(o, o.shape[-1:], eps=1e-6)).to(x.dtype), matrix

    def gated(self, x: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
        """The layer's output [B, T, d] from a readout."""
        return self.o(F.silu(self.gate(x)) * o)

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        o, matrix = self.readout(x, past, start)
        return self.gated(x, o), matrix


class FeedForward(nn.Module):
    """Llama's gated feed-forward network."""

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """A token mixer and a feed-forward network, each after a norm and with a residual."""

    def __init__(self, width: int, inner: int, mixer: nn.Module):
        super().__init__()
        self.mixer, self.net = mixer, FeedForward(width, inner)
        self.norm, self.net_norm = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        y, kept = self.mixer(self.norm(x), past, start)
        return self.fed(x + y), kept

    def fed(self, x: torch.Tensor) -> torch.Tensor:
        """The residual stream after the feed-forward network."""
        return x + self.net(self.net_norm(x))


class Stack(nn.Module):
    """A sequence of blocks."""

    def __init__(self, blocks: list[Block]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor, past: State, start: int) -> tuple[torch.Tensor, State]:
        kept = []
        for i, block in enumerate(self.blocks):
            x, state = block(x, past[i] if past else None, start)
            kept.append(state)
        return x, kept


def attention_stack(width: int, inner: int, layers: int, heads: int) -> Stack:
    """The layers of a plain transformer."""
    return Stack([Block(width, inner, Attention(width, heads)) for _ in range(layers)])


def one_by_one(
    advance: Callable[[torch.Tensor, State], tuple[torch.Tensor, State]], ids: torch.Tensor, state: State
) -> tuple[torch.Tensor, State]:
    """(states [B, T, d] of tokens [B, T] that `advance` reads one by one from `state`, the state after the
    last).
    """
    states = []
    for at in range(ids.shape[1]):
        one, state = advance(ids[:, at : at + 1], state)
        states.append(one)
    return torch.cat(states, 1), state


def numbers_in(state: State) -> int:
    """The number of elements in a state."""
    if isinstance(state, torch.Tensor):
        return state.numel()
    if isinstance(state, dict):
        return sum(map(numbers_in, state.values()))
    return sum(map(numbers_in, state)) if isinstance(state, list | tuple) else 0
