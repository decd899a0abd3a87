"""The text part of DREAM's drafter (Hu et al., 2025): two layers, and between them a gated cross-attention to
the target's last states. Its output is trained towards the target's features after an early layer: for each
token, the one whose attention has the lowest entropy.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.cross_attention.cross_attention import (
    CrossAttention,
    CrossAttentionDrafter,
    Remembered,
    keys_and_values,
)
from decoders.heads.cross_attention.mixture_of_attentions import memory_mask
from decoders.heads.parts.layers import DecoderLayer, Past, rotated, turned
from decoders.heads.parts.module import cross_entropy
from decoders.heads.parts.taps import Taps, Target

EARLY = 0.4  # share of the target's first layers from which the teaching layer is chosen
STATE_WEIGHT = 0.2
PERIODS = (1, 6)  # in training, the target's newest states are up to this many tokens old


def row_entropies(rows: torch.Tensor) -> torch.Tensor:
    """The entropy in nats of attention rows [..., H, T, K], averaged over heads: [..., T]."""
    return -(rows * rows.clamp(min=1e-30).log()).sum(-1).mean(-2)


class Dream(CrossAttentionDrafter):
    """Self-attention layer, gated cross-attention, self-attention layer. The gate tanh(g) starts at 0."""

    kind = "dream"
    is_open = True  # False closes the gate, to measure its effect
    rates = (6e-3, 1e-3)

    def __init__(self, target: Target, intermediate: int = 256):
        super().__init__(target, intermediate=intermediate)
        width, size = target.width, target.width // target.heads
        early = max(1, int(EARLY * target.layers))
        self.reads = tuple(range(early + 1))  # inputs and outputs of the layers that may teach
        shape = (width, target.heads, intermediate, target.theta, target.eps)
        self.before, self.after = DecoderLayer(*shape), DecoderLayer(*shape)
        self.cross = CrossAttention(width, target.heads, target.theta)
        self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.cross_norm, self.last_norm = (nn.RMSNorm(width, target.eps) for _ in range(2))
        self.q_norm, self.k_norm = (nn.RMSNorm(size, target.eps) for _ in range(2))
        self.gate = nn.Parameter(torch.zeros(()))
        with torch.no_grad():
            self.last_norm.weight.copy_(target.last_norm)

    def remember(self, hidden: torch.Tensor, states: dict[int, torch.Tensor], first: int) -> Remembered:
        """Keys and values [B, M, H, D] from the target's last states, the keys normed and with rotary
        positions.
        """
        keys, values = (
            m(hidden.to(m.weight.dtype)).unflatten(-1, (self.cross.heads, -1)) for m in (self.k, self.v)
        )
        places = torch.arange(first, first + hidden.shape[1], device=hidden.device)
        keys = rotated(self.k_norm(keys).transpose(1, 2), places, self.cross.theta).to(values.dtype)
        return keys.transpose(1, 2), values

    def middle(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
        remembered: Remembered,
        sees: torch.Tensor,
    ) -> tuple[torch.Tensor, Past]:
        """(states [B, N, d] of entries after the cross-attention, keys and values of the first layer)."""
        x, past = self.before(x, positions, mask, past)
        keys, values = (part.transpose(1, 2) for part in remembered)
        crossed = self.cross(self.cross_norm(x), positions + 1, keys, values, sees, self.q_norm)
        return x + self.gate.tanh() * crossed * self.is_open, past

    def run(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
        remembered: Remembered,
        sees: torch.Tensor,
    ) -> tuple[torch.Tensor, Past]:
        """As `CrossAttentionDrafter.run`; past: keys and values of the first layer, then of the second."""
        first, second = (None, None) if past is None else (past[:2], past[2:])
        x, first = self.middle(x, positions, mask, first, remembered, sees)
        x, second = self.after(x, positions, mask, second)
        return self.last_norm(x), (*first, *second)

    @torch.no_grad()
    def teachers(self, taps: Taps) -> torch.Tensor:
        """For each token [B, T], the early layer (counted from 1) whose attention row there has the lowest
        entropy.
        """
        entropies = []
        causal = torch.ones(taps.tokens.shape[1], taps.tokens.shape[1], dtype=torch.bool).tril()
        for layer in self.reads[:-1]:
            keys, _ = keys_and_values(self.target.model, layer, taps.states[layer], 0)
            queries = self.queries(layer, taps.states[layer])
            groups = queries.shape[2] // keys.shape[2]
            keys = keys.repeat_interleave(groups, 2)
            scores = torch.einsum("bthd,bkhd->bhtk", queries, keys) * keys.shape[-1] ** -0.5
            rows = scores.float().masked_fill(~causal.to(scores.device), float("-inf")).softmax(-1)
            entropies.append(row_entropies(rows))
        return torch.stack(entropies).argmin(0) + 1

    def queries(self, layer: int, stream: torch.Tensor) -> torch.Tensor:
        """The target's own queries [B, T, H, D] in a layer that a stream [B, T, d] enters."""
        block, base = self.target.model.base_model.layers[layer], self.target.model.base_model
        normed = block.input_layernorm(stream.to(block.input_layernorm.weight.dtype))
        queries = block.self_attn.q_proj(normed).unflatten(-1, (-1, block.self_attn.head_dim))
        places = torch.arange(stream.shape[1], device=stream.device)
        cos, sin = base.rotary_emb(queries, places[None])
        return queries * cos[:, :, None] + turned(queries) * sin[:, :, None]

    def loss(self, taps: Taps) -> torch.Tensor:
        """KL(target || draft) + 0.2 smooth L1 to the last state + smooth L1 of the middle states to the
        features, at unit size, after the layer that `teachers` picks for each token.
        """
        texts, length = taps.tokens.shape
        random = torch.Generator().manual_seed(int(taps.tokens.sum()) % 2**31)
        periods = torch.randint(PERIODS[0], PERIODS[1] + 1, (texts,), generator=random).tolist()
        # the root of entry e is token e + 1, which the target has not read yet
        sees = torch.stack([memory_mask(length, period)[:-1] for period in periods])[:, None]
        sees = sees.to(taps.tokens.device)
        remembered = self.remember(taps.hidden, taps.states, 0)
        positions = torch.arange(length - 1, device=sees.device)
        x = self.target.read(taps.tokens[:, 1:])
        middle, _ = self.middle(x, positions, None, None, remembered, sees)
        states = self.last_norm(self.after(middle, positions)[0])
        features = torch.stack([taps.states[layer] for layer in self.reads[1:]])  # [E, B, T, d]
        chosen = (self.teachers(taps) - 1)[None, :, :, None].expand(-1, -1, -1, features.shape[-1])
        taught = features.gather(0, chosen)[0][:, 1:]
        taught = taught / taught.square().mean().sqrt()
        rows = self.loss_rows(taps.tokens, length - 1)
        p, logits = taps.p[:, rows + 1], self.target.logits(states[:, rows])
        divergence = cross_entropy(p, logits) + (p * p.clamp(min=1e-30).log()).sum(-1).mean()
        last = F.smooth_l1_loss(states.float(), taps.hidden[:, 1:])
        return divergence + STATE_WEIGHT * last + F.smooth_l1_loss(middle.float(), taught)
