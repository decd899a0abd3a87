"""The drafter of Mixture of Attentions (Zimmer et al., 2024), with three kinds of attention.

Layer self-attention summarises all of the target's layers at a token in a memory vector. Cross-attention
reads the memory vectors of verified tokens only, so that they stay fixed while drafting. Self-attention
covers the drafted tokens.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.cross_attention.cross_attention import (
    CrossAttentionDrafter,
    CrossLayer,
    Remembered,
    keys_and_values,
)
from decoders.heads.parts.layers import DecoderLayer, FeedForward, Past
from decoders.heads.parts.module import cross_entropy
from decoders.heads.parts.taps import Taps, Target

PERIODS = (6, 14)  # range of training periods: after this many tokens each, the newest one counts as verified
TOKEN_WEIGHT = 0.1  # of the divergence; the state's weight is 1


def memory_mask(length: int, period: int) -> torch.Tensor:
    """The training mask [T, T] of cross-attention: tokens up to the latest multiple of `period`."""
    places = torch.arange(length)
    return places[None] <= (places // period * period)[:, None]


def staircase(length: int, period: int) -> torch.Tensor:
    """A training mask [T, T] of self-attention that covers only drafted tokens: those after the latest
    multiple of `period`, up to the token itself.
    """
    places = torch.arange(length)
    start = (places // period * period)[:, None]
    causal = places[None] <= places[:, None]
    return causal & ((places[None] > start) | (places[None] == places[:, None]))


class MixtureOfAttentions(CrossAttentionDrafter):
    """`width`: of layer self-attention, into which [K | V] of each layer is projected; `intermediate`: of the
    MLPs. The output estimates the target's last state, the input of its head (the paper's N = 0: no target
    layer is run again).
    """

    kind = "mixture_of_attentions"
    rates = (6e-3, 1e-3)

    def __init__(self, target: Target, width: int = 64, intermediate: int = 256):
        super().__init__(target, width=width, intermediate=intermediate)
        d, self.reads = target.width, tuple(range(target.layers))
        attend = target.model.base_model.layers[0].self_attn
        size = attend.k_proj.out_features + attend.v_proj.out_features
        heads = max(1, width // 32)
        self.narrow = nn.Linear(size, width, bias=False)
        self.layer_embeddings = nn.Parameter(0.02 * torch.randn(target.layers, width))
        self.layer_q, self.layer_k, self.layer_v, self.layer_out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.layer_heads, self.layer_feed = heads, FeedForward(width, width)
        self.layer_norms = nn.ModuleList(nn.RMSNorm(width, target.eps) for _ in range(2))
        self.widen = nn.Linear(width, d, bias=False)
        shape = (d, target.heads, intermediate, target.theta, target.eps)
        self.drafted, self.crossed = DecoderLayer(*shape), CrossLayer(*shape)
        self.last_norm = nn.RMSNorm(d, target.eps)
        with torch.no_grad():
            self.last_norm.weight.copy_(target.last_norm)

    def layer_attention(self, kv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """kv [..., L, 2 H D]: (memory vectors [..., d], weights [..., L, L], means over heads)."""
        x = self.narrow(kv) + self.layer_embeddings
        normed = self.layer_norms[0](x)
        q, k, v = (
            part(normed).unflatten(-1, (self.layer_heads, -1)).transpose(-3, -2)
            for part in (self.layer_q, self.layer_k, self.layer_v)
        )
        weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
        x = x + self.layer_out((weights @ v).transpose(-3, -2).flatten(-2))
        x = x + self.layer_feed(self.layer_norms[1](x))
        return self.widen(x.mean(-2)), weights.mean(-3)

    def remember(self, hidden: torch.Tensor, states: dict[int, torch.Tensor], first: int) -> Remembered:
        """A memory vector [B, M, d] for each token."""
        pairs = (keys_and_values(self.target.model, layer, states[layer], first) for layer in self.reads)
        kv = torch.stack([torch.cat([part.flatten(2) for part in pair], -1) for pair in pairs], 2)
        return (self.layer_attention(kv)[0],)

    def run(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        past: Past | None,
        remembered: Remembered,
        sees: torch.Tensor,
    ) -> tuple[torch.Tensor, Past]:
        """As `CrossAttentionDrafter.run`."""
        x, past = self.drafted(x, positions, mask, past)
        return self.last_norm(self.crossed(x, positions + 1, remembered[0], sees)), past

    def loss(self, taps: Taps) -> torch.Tensor:
        """Smooth L1 to the target's last state plus 0.1 times the divergence from its distribution. Each text
        has its own period; in the first half of training, self-attention sometimes uses `staircase`.
        """
        texts, length = taps.tokens.shape
        random = torch.Generator().manual_seed(int(taps.tokens.sum()) % 2**31)
        periods = torch.randint(PERIODS[0], PERIODS[1] + 1, (texts,), generator=random).tolist()
        stairs = torch.rand(texts, generator=random) < (1 - 2 * self.progress) * self.training
        plain = torch.ones(length, length, dtype=torch.bool).tril()
        sees = torch.stack([memory_mask(length, period)[1:] for period in periods])[:, None]
        own = [staircase(length, p) if s else plain for p, s in zip(periods, stairs, strict=True)]
        mask = torch.stack(own)[:, None, 1:, 1:].to(taps.tokens.device)
        remembered = self.remember(taps.hidden, taps.states, 0)
        positions = torch.arange(length - 1, device=mask.device)
        x = self.target.read(taps.tokens[:, 1:])
        states, _ = self.run(x, positions, mask, None, remembered, sees.to(mask.device))
        rows = self.loss_rows(taps.tokens, length - 1)
        p, logits = taps.p[:, rows + 1], self.target.logits(states[:, rows])
        divergence = cross_entropy(p, logits) + (p * p.clamp(min=1e-30).log()).sum(-1).mean()
        return F.smooth_l1_loss(states.float(), taps.hidden[:, 1:]) + TOKEN_WEIGHT * divergence
