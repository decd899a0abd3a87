"""A recurrent layer of Mamba-2's kind (Dao and Gu, 2024) that reads a whole tree of drafted tokens at once,
without a state for every node (STree: Wu et al., 2025).

Each head has a state h [P, S] that decays by one number a token:

    h_v = exp(A dt_v) h_parent + dt_v x_v B_v^T,    y_v = h_v C_v

With L_v the sum of A dt along the path to v, and M_vw = 1 where w is v or an ancestor of v, all outputs
follow from the one state h_0 in front of the tree, with matrix products:

    y_v = exp(L_v) h_0 C_v + sum_w M_vw exp(L_v - L_w) dt_w (B_w . C_v) x_w

A text is a tree without branches.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

WINDOW = 4  # tokens that the short convolution covers


def ancestors(parents: list[int]) -> torch.Tensor:
    """M [N, N]: True where column w is row v or one of its ancestors. parents: of each node one that stands
    before it, -1 for what the tree hangs from.
    """
    seen = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node] |= seen[parent]
    return seen


def recent(parents: list[int]) -> torch.Tensor:
    """[N, WINDOW]: the last tokens on the path to each node, itself last, as indices into (the WINDOW - 1
    tokens in front of the tree, its nodes).
    """
    before = WINDOW - 1
    rows: list[list[int]] = []
    for node, parent in enumerate(parents):
        above = rows[parent] if parent >= 0 else list(range(before - WINDOW, before))
        rows.append([*above[1:], before + node])
    return torch.tensor(rows)


def tree_scan(
    x: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    seen: torch.Tensor,
    h: torch.Tensor,
) -> torch.Tensor:
    """Outputs y [..., H, N, P] of all nodes: the formula above.

    x [..., H, N, P], dt [..., H, N], a [H] the rate A (negative), b and c [..., N, S] for all heads, seen
    [N, N] as `ancestors` gives it, h [..., H, P, S] the state in front of the tree.
    """
    fall = (a[:, None] * dt) @ seen.to(dt.dtype).T  # L [..., H, N]
    between = (fall[..., :, None] - fall[..., None, :]).masked_fill(~seen, float("-inf")).exp()
    weights = between * (c @ b.transpose(-1, -2))[..., None, :, :] * dt[..., None, :]
    return weights @ x + fall.exp()[..., None] * torch.einsum("...hps,...ns->...hnp", h, c)


def step(
    h: torch.Tensor, x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    """The state [..., H, P, S] after one token: x [..., H, P], dt [..., H], a [H], b [..., S]."""
    decay = (a * dt).exp()[..., None, None]
    return decay * h + (dt[..., None] * x)[..., None] * b[..., None, None, :]


@dataclass(frozen=True)
class Read:
    """What a layer keeps of the tokens that it has just read, in order to continue after any of them:
    inputs.
    """

    mixed: torch.Tensor  # [B, N, channels], inputs of the convolution
    x: torch.Tensor  # [B, H, N, P]
    dt: torch.Tensor  # [B, H, N]
    b: torch.Tensor  # [B, N, S]


@dataclass(frozen=True)
class Memory:
    """A layer's whole memory of a text: one state, whatever the length, and the convolution's last inputs."""

    h: torch.Tensor  # [B, H, P, S]
    tail: torch.Tensor  # [B, WINDOW - 1, channels]

    @property
    def size(self) -> int:
        """The number of values that it holds."""
        return self.h.numel() + self.tail.numel()


class StateSpace(nn.Module):
    """The layer: one projection in, a short convolution, the scan, a gated norm, one projection out."""

    def __init__(self, width: int, heads: int = 4, state: int = 16):
        super().__init__()
        self.heads, self.state, self.size = heads, state, width // heads
        self.channels = width + 2 * state
        self.into = nn.Linear(width, width + self.channels + heads, bias=False)
        self.conv = nn.Parameter(torch.randn(WINDOW, self.channels) / WINDOW)
        self.rate = nn.Parameter(torch.linspace(1, 4, heads).log())  # A = -exp(rate)
        self.shift = nn.Parameter(torch.full((heads,), -2.0))  # of dt
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = nn.RMSNorm(width)
        self.out = nn.Linear(width, width, bias=False)

    def empty(self, batch: int = 1) -> Memory:
        """The memory of an empty text."""
        like = self.conv
        return Memory(
            like.new_zeros(batch, self.heads, self.size, self.state),
            like.new_zeros(batch, WINDOW - 1, self.channels),
        )

    def forward(
        self, u: torch.Tensor, memory: Memory, seen: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, Read]:
        """Outputs [B, N, d] for inputs u [B, N, d] of a tree after `memory`, and what `after` needs.

        seen, places: `ancestors` and `recent` of the tree.
        """
        gate, mixed, dt = self.into(u).split([self.heads * self.size, self.channels, self.heads], -1)
        window = torch.cat([memory.tail, mixed], 1)[:, places]  # [B, N, WINDOW, channels]
        x, b, c = F.silu((window * self.conv).sum(-2)).split([u.shape[-1], self.state, self.state], -1)
        x = x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)  # [B, H, N, P]
        dt = F.softplus(dt + self.shift).transpose(1, 2)  # [B, H, N]
        y = tree_scan(x, dt, -self.rate.exp(), b, c, seen, memory.h) + self.skip[:, None, None] * x
        y = self.norm(y.transpose(1, 2).flatten(2) * F.silu(gate))
        return self.out(y), Read(mixed, x, dt, b)

    def after(self, memory: Memory, read: Read, path: list[int]) -> Memory:
        """The memory after the nodes `path`, root first, of the tree that was read: the state is updated
        along them (the paper's activation replay).
        """
        h, tail = memory.h, memory.tail
        for node in path:
            h = step(h, read.x[:, :, node], read.dt[:, :, node], -self.rate.exp(), read.b[:, node])
        tail = torch.cat([tail, read.mixed[:, path]], 1)[:, -(WINDOW - 1) :]
        return Memory(h, tail)
