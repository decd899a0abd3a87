"""The base of drafters with cross-attention to the target's keys, values or states.

An entry reads a token's embedding, earlier entries by self-attention, and the target's keys, values or states
of verified tokens by cross-attention. While drafting, these end before the root, whatever has been drafted.
The first token has no entry, since the target has read nothing before it: entry e reads token e + 1 and, on
known text, sees the target's tokens 0 to e.
"""

from functools import partial

import torch
from torch import nn

from decoders.engine.attention_kernels import attend
from decoders.heads.parts.layers import Entries, FeedForward, Past, rotated, turned
from decoders.heads.parts.module import ALL, DraftModule, Sees
from decoders.heads.parts.taps import Taps

Remembered = tuple[torch.Tensor, ...]  # each [B, M, ...]: what cross-attention reads for M verified tokens


class CrossEntries(Entries):
    """One lane's entries, and what cross-attention reads for the tokens that the target has read."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: Remembered = ()


class CrossAttention(nn.Module):
    """Attention of entries' queries over given keys and values [B, H, M, D]; without biases."""

    def __init__(self, width: int, heads: int, theta: float):
        super().__init__()
        self.heads, self.theta = heads, theta
        self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        sees: torch.Tensor,
        norm: nn.Module | None = None,
    ) -> torch.Tensor:
        """x [B, N, d] at positions [N] -> [B, N, d]. sees [N, M] or [B, 1, N, M]: True where a row may
        attend. norm: of the queries [B, H, N, D], before rotary positions.
        """
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q = rotated(q if norm is None else norm(q), positions, self.theta).to(values.dtype)
        grouped = keys.shape[1] != self.heads
        mixed = attend(q, keys.to(q.dtype), values, attn_mask=sees, enable_gqa=grouped)
        return self.out(mixed.transpose(1, 2).flatten(2))


class CrossAttentionDrafter(DraftModule):
    """Base class: a subclass defines what cross-attention reads (`remember`) and how entries are computed
    (`run`).
    """

    sees = Sees(ALL, root=True, path=True, layers=True)

    def remember(self, hidden: torch.Tensor, states: dict[int, torch.Tensor], first: int) -> Remembered:
        """What cross-attention reads for the M tokens at places first, first + 1, ... hidden [B, M, d]: their
        states after the last norm; states: layer -> the residual stream [B, M, d] in front of it.
        """
        raise NotImplementedError

    def run(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
        remembered: Remembered,
        sees: torch.Tensor,
    ) -> tuple[torch.Tensor, Past]:
        """Runs entries x [B, N, d] after `past`: (states [B, N, d] for the target's head, `past` with their
        keys and values appended). mask as in `Attention.forward`; sees [N, M]: which of `remembered` each
        entry may attend to.
        """
        raise NotImplementedError

    def memory(self) -> CrossEntries:
        return CrossEntries()

    def begin(
        self,
        memory: CrossEntries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`."""
        streams = {layer: stream[None] for layer, stream in (states or {}).items()}
        new = self.remember(hidden[None], streams, memory.known)
        old = memory.remembered
        memory.remembered = tuple(torch.cat(pair, 1) for pair in zip(old, new, strict=True)) if old else new
        count = memory.known + len(tokens)
        sees = torch.ones(len(tokens), count, dtype=torch.bool, device=hidden.device).tril(memory.known)
        layer = partial(self.run, remembered=memory.remembered, sees=sees)
        return self.target.logits(memory.know(layer, self.target.read(tokens)))

    def expand(self, memory: CrossEntries, parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] below new nodes, as `DraftModule.begin` says."""
        sees = torch.ones(len(tokens), memory.known, dtype=torch.bool, device=tokens.device)
        layer = partial(self.run, remembered=memory.remembered, sees=sees)
        return self.target.logits(memory.draft(layer, self.target.read(tokens), parents))

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`. The entry of depth k at row n sees the known entries up to n, the drafted
        ones of its row, and the target's tokens up to n.
        """
        remembered, length = self.remember(taps.hidden, taps.states, 0), taps.tokens.shape[1]
        past, guesses = None, []
        for tokens, positions, mask in taps.levels(depth):
            sees = torch.ones(len(positions), length, dtype=torch.bool, device=tokens.device).tril()
            x = self.target.read(tokens)
            states, past = self.run(x, positions, mask, past, remembered, sees)
            guesses.append(self.target.logits(states))
        return guesses


class CrossLayer(nn.Module):
    """A decoder layer that attends to vectors [B, M, d] of verified tokens instead of its own entries, with
    its own key and value matrices, at the tokens' positions.
    """

    def __init__(self, width: int, heads: int, intermediate: int, theta: float, eps: float):
        super().__init__()
        self.cross, self.feed = CrossAttention(width, heads, theta), FeedForward(width, intermediate)
        self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.first_norm, self.norm = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)

    def forward(
        self, x: torch.Tensor, positions: torch.Tensor, read: torch.Tensor, sees: torch.Tensor
    ) -> torch.Tensor:
        """x [B, N, d] at positions [N], over vectors `read` [B, M, d] at places 0 to M - 1 -> [B, N, d]."""
        keys, values = (
            part(read).unflatten(-1, (self.cross.heads, -1)).transpose(1, 2) for part in (self.k, self.v)
        )
        places = torch.arange(read.shape[1], device=read.device)
        keys = rotated(keys, places, self.cross.theta).to(values.dtype)
        x = x + self.cross(self.first_norm(x), positions, keys, values, sees)
        return x + self.feed(self.norm(x))


def keys_and_values(
    model: nn.Module, layer: int, stream: torch.Tensor, first: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The keys and values [B, M, H, D] that the target's layer `layer` caches for tokens at places first,
    first + 1, ..., computed with its weights from the stream [B, M, d] that enters it.
    """
    block, base = model.base_model.layers[layer], model.base_model
    normed = block.input_layernorm(stream.to(block.input_layernorm.weight.dtype))
    attend = block.self_attn
    keys, values = (
        part(normed).unflatten(-1, (-1, attend.head_dim)) for part in (attend.k_proj, attend.v_proj)
    )
    places = torch.arange(first, first + stream.shape[1], device=stream.device)
    cos, sin = base.rotary_emb(values, places[None])  # [1, M, D]
    return keys * cos[:, :, None] + turned(keys) * sin[:, :, None], values
