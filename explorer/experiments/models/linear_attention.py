"""Linear attention with a decay for each place and each number of a key (gated linear attention: Yang et al.,
2024), read token by token or by several simulated devices, and a small language model of such layers.

A head keeps a state S [K, V] instead of keys and values:

    S_t = g_t * S_(t-1) + k_t v_t^T,    o_t = q_t S_t        (g_t [K] scales the rows of S)

A device that holds a segment of tokens needs from all tokens before it only the state after them. With L_t
the sum of log g from the start of the segment to t,

    o_t = (q_t e^(L_t)) S_before + sum_(i <= t) (q_t e^(L_t - L_i) . k_i) v_i.

How states travel between devices: `device_scans.py`.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from explorer.experiments.models.device_scans import Scan, all_scan

# q, k, fall = log g [..., T, K], v [..., T, V] -> outputs [..., T, V] and the state [..., K, V] after them
Mix = Callable[..., tuple[torch.Tensor, torch.Tensor]]
SLOW = 8.0  # the larger, the less an untrained layer forgets


def in_order(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, fall: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The definition, token by token."""
    state = v.new_zeros(*k.shape[:-2], k.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        state = fall[..., t, :, None].exp() * state + k[..., t, :, None] * v[..., t, None, :]
        outputs.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(outputs, -2), state


def own_state(k: torch.Tensor, v: torch.Tensor, fall: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For a segment alone: the state after it [..., K, V], and its total decay [..., K]."""
    along = fall.cumsum(-2)
    total = along[..., -1, :]
    left = (total[..., None, :] - along).exp()  # decay of each key until the end of the segment
    return (k * left).transpose(-1, -2) @ v, total.exp()


def own_outputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, fall: torch.Tensor) -> torch.Tensor:
    """The outputs of a segment's tokens from the segment alone, without the state before it."""
    along = fall.cumsum(-2)
    causal = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    between = along[..., :, None, :] - along[..., None, :, :]  # [..., T, T, K]
    kept = between.masked_fill(~causal[..., None], -torch.inf).exp()
    return torch.einsum("...tk,...ik,...tik->...ti", q, k, kept) @ v


def on_devices(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    fall: torch.Tensor,
    devices: int = 4,
    scan: Callable[[list[torch.Tensor], list[torch.Tensor]], Scan] = all_scan,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same from `devices` segments, or one per token; `scan` moves states between them."""
    parts = list(
        zip(*(one.tensor_split(min(devices, q.shape[-2]), -2) for one in (q, k, v, fall)), strict=True)
    )
    states, decays = zip(*(own_state(k, v, fall) for _, k, v, fall in parts), strict=True)
    before = scan(list(states), list(decays)).before
    outputs = [
        own_outputs(q, k, v, fall) + (q * fall.cumsum(-2).exp()) @ state
        for (q, k, v, fall), state in zip(parts, before, strict=True)
    ]
    return torch.cat(outputs, -2), decays[-1][..., None] * before[-1] + states[-1]


class LinearAttention(nn.Module):
    """A layer [B, T, width] -> [B, T, width] with `heads` states of [size, size]."""

    def __init__(self, width: int, heads: int, size: int):
        super().__init__()
        self.heads = heads
        self.mixed = nn.Linear(width, 4 * heads * size, bias=False)
        self.norm = nn.RMSNorm(size)
        self.out = nn.Linear(heads * size, width, bias=False)

    def forward(self, x: torch.Tensor, mix: Mix) -> torch.Tensor:
        """Mixes the tokens by `mix`."""
        four = self.mixed(x).unflatten(-1, (4, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k, v, gate = four  # [B, H, T, size]
        heads, _ = mix(q, F.silu(k), v, F.logsigmoid(gate) / SLOW)
        return self.out(self.norm(heads).transpose(1, 2).flatten(2))


class LinearModel(nn.Module):
    """Tokens [B, T] -> logits [B, T, vocabulary], by layers of linear attention and a small network."""

    def __init__(self, vocabulary: int, width: int = 64, layers: int = 2, heads: int = 4, size: int = 16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mixers = nn.ModuleList(LinearAttention(width, heads, size) for _ in range(layers))
        self.networks = nn.ModuleList(
            nn.Sequential(
                nn.RMSNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
            )
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(layers + 1))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, mix: Mix = on_devices) -> torch.Tensor:
        """Logits of texts; all mixing functions give the same ones up to rounding."""
        x = self.embed(tokens)
        for norm, mixer, network in zip(self.norms, self.mixers, self.networks, strict=False):
            x = x + mixer(norm(x), mix)
            x = x + network(x)
        return self.head(self.norms[-1](x))
