"""Layers for draft modules that attend to earlier entries, and one lane's entries in them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from decoders.engine.attention_kernels import attend
from decoders.heads.parts.fast_layers import Fast, FastAttention, FastBlock, FastFeed, with_past

# Keys and values, both [B, H, P, D], of each layer in turn; of one layer with a window their positions too.
Past = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class LayerForm:
    """How published layers differ: query and key heads, head size, rotary base; biases of q, k and v; the eps
    of norms on queries and keys, None without such norms; `turns` [D / 2], the rotary frequencies where theta
    does not determine them, and a factor on cosines and sines; `window`: how many positions an entry attends
    to, its own included, None for all before it.
    """

    heads: int
    kv_heads: int
    size: int
    theta: float
    bias: bool = False
    qk_eps: float | None = None
    turns: torch.Tensor | None = None
    turn_scale: float = 1.0
    window: int | None = None


class Attention(nn.Module):
    """Multi-head attention with rotary positions."""

    def __init__(
        self, width: int, heads: int, theta: float, reads: int | None = None, form: "LayerForm | None" = None
    ):
        """reads: width of the input, if not `width`. form: of a published layer; it replaces heads and
        theta.
        """
        super().__init__()
        form = form or LayerForm(heads, heads, width // heads, theta)
        self.heads, self.kv_heads, self.size = form.heads, form.kv_heads, form.size
        self.theta, self.turns, self.turn_scale = form.theta, form.turns, form.turn_scale
        self.window = form.window
        reads = reads or width
        self.q = nn.Linear(reads, self.heads * self.size, bias=form.bias)
        self.k, self.v = (nn.Linear(reads, self.kv_heads * self.size, bias=form.bias) for _ in range(2))
        self.out = nn.Linear(self.heads * self.size, width, bias=False)
        normed = form.qk_eps is not None
        self.q_norm, self.k_norm = (
            nn.RMSNorm(self.size, form.qk_eps) if normed else nn.Identity() for _ in range(2)
        )
        self.fast = Fast(FastAttention)

    def angles(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [N, D] of positions [N]."""
        return rotary(positions, self.size, self.theta, self.turns, self.turn_scale)

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """x [B, N, d] at positions [N] after `past`: (outputs [B, N, d], keys and values with these
        appended, with a window their positions [1, 1, P + N, 1] too).

        mask [N, P + N]: True where a row may attend; None for causal attention, which for N > 1 requires that
        `past` is empty.
        """
        if len(x) == 1 and (fast := self.fast.of(self, x)) is not None:
            mixed, past = fast.mix(x[0], positions, mask, past)
            return mixed[None], past
        q, k, v = (m(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for m in (self.q, self.k, self.v))
        angles = self.angles(positions)
        q, k = (at_angles(part, *angles).to(v.dtype) for part in (self.q_norm(q), self.k_norm(k)))
        (k, v, *places), mask = with_past((k, v), positions, mask, past, self.window)
        shared = self.kv_heads != self.heads
        mixed = attend(q, k, v, attn_mask=mask, is_causal=mask is None and x.shape[1] > 1, enable_gqa=shared)
        return self.out(mixed.transpose(1, 2).flatten(2)), (k, v, *places)


def rotated(x: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    """Queries or keys [B, H, N, D] rotated to rotary positions [N]."""
    return at_angles(x, *rotary(positions, x.shape[-1], theta))


def rotary(
    positions: torch.Tensor,
    size: int,
    theta: float,
    turns: torch.Tensor | None = None,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [N, D] of positions [N]; turns and scale: see `LayerForm`."""
    if turns is None:
        turns = theta ** -(torch.arange(0, size, 2, device=positions.device) / size)  # float32 always
    angles = positions[:, None] * turns.to(positions.device)  # [N, D / 2]
    cos, sin = (scale * torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))
    return cos, sin


def at_angles(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Queries or keys [B, H, N, D] rotated by the angles of these cosines and sines [N, D]."""
    return x * cos.to(x.dtype) + turned(x) * sin.to(x.dtype)


def turned(x: torch.Tensor) -> torch.Tensor:
    """(-second half, first half) of the last axis: the `rotate_half` of rotary positions."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], -1)


class FeedForward(nn.Module):
    """The gated SiLU layer of Llama."""

    def __init__(self, width: int, intermediate: int):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, intermediate, bias=False) for _ in range(2))
        self.down = nn.Linear(intermediate, width, bias=False)
        self.fast = Fast(FastFeed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., d] -> [..., d]."""
        if (fast := self.fast.of(self, x)) is not None:
            return fast.forward(x.reshape(-1, x.shape[-1])).view(x.shape)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class DecoderLayer(nn.Module):
    """A Llama layer; `first`: without the norm in front of its attention, as in EAGLE. form: of its
    attention, in place of heads and theta.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        intermediate: int,
        theta: float,
        eps: float,
        first: bool = False,
        form: LayerForm | None = None,
    ):
        super().__init__()
        self.first_norm = nn.Identity() if first else nn.RMSNorm(width, eps)
        self.attention = Attention(width, heads, theta, form=form)
        self.norm = nn.RMSNorm(width, eps)
        self.feed = FeedForward(width, intermediate)
        self.fast = Fast(FastBlock)

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """As `Attention.forward`."""
        if len(x) == 1 and (fast := self.fast.of(self, x)) is not None:
            return fast.forward(self.first_norm(x), x, positions, mask, past)
        mixed, past = self.attention(self.first_norm(x), positions, mask, past)
        x = x + mixed
        return x + self.feed(self.norm(x)), past


def one_after_another(
    layers: Iterable[DecoderLayer],
    x: torch.Tensor,
    positions: torch.Tensor,
    mask: torch.Tensor | None,
    past: Past | None,
) -> tuple[torch.Tensor, Past]:
    """Runs x [B, N, d] through several layers, as `DecoderLayer.forward`; past: keys and values of all layers
    in turn.
    """
    held = ()
    for at, layer in enumerate(layers):
        x, own = layer(x, positions, mask, None if past is None else past[2 * at : 2 * at + 2])
        held += own
    return x, held


class Entries:
    """A drafter's memory for one lane: entries of the known text in order, then a tree of drafted ones.

    Node 0 is the last known entry, the root; drafted nodes are numbered from 1 in the order of drafting.
    """

    def __init__(self) -> None:
        self.past: Past | None = None
        self.known = 0
        self.outputs: torch.Tensor | None = None  # [1 + drafted, d], row 0 is the root's
        self.paths: list[list[int]] = [[]]  # for each node: the drafted nodes it sees, itself included

    def know(self, layer: Callable, x: torch.Tensor) -> torch.Tensor:
        """Drops what was drafted and appends known entries x [M, d]; returns the output [d] of the last."""
        if self.past is not None:
            self.past = tuple(part[:, :, : self.known] for part in self.past)
        positions = torch.arange(self.known, self.known + len(x), device=x.device)
        mask = None  # one entry sees all before it
        if len(x) > 1:
            mask = torch.ones(len(x), self.known + len(x), dtype=torch.bool, device=x.device).tril(self.known)
        out, self.past = layer(x[None], positions, mask, self.past)
        self.known += len(x)
        self.outputs, self.paths = out[0, -1:], [[]]
        return out[0, -1]

    def draft(self, layer: Callable, x: torch.Tensor, parents: list[int]) -> torch.Tensor:
        """Appends drafted entries x [N, d] below the existing nodes `parents`; returns their outputs [N,
        d].
        """
        first = len(self.paths)
        self.paths += [[*self.paths[parent], first + row] for row, parent in enumerate(parents)]
        new = self.paths[first:]
        positions = torch.tensor([self.known - 1 + len(path) for path in new], device=x.device)
        mask = None
        if len(new) > 1 or len(new[0]) < first:  # else the single entry sees all
            mask = torch.from_numpy(self.seen_by(new)).to(x.device)
        out, self.past = layer(x[None], positions, mask, self.past)
        self.outputs = torch.cat([self.outputs, out[0]])
        return out[0]

    def seen_by(self, paths: list[list[int]]) -> np.ndarray:
        """The mask [N, known + drafted] of drafted entries with these paths."""
        sees = np.zeros((len(paths), self.known + len(self.paths) - 1), dtype=bool)
        sees[:, : self.known] = True
        for row, path in enumerate(paths):
            sees[row, [self.known - 1 + node for node in path]] = True
        return sees
