"""The MLP speculator (Wertheimer et al., 2024): each drafted token is mixed into a state, from which a
vocabulary matrix predicts the next one.

    s_0 = h_n;   s_j = GELU(LN_j(P_j s_{j-1} + (ew / sw) Emb_j(g_{j-1})));   logits_j = U_j s_j

g_0 is the root, g_j the token drafted at depth j. The weights sw and ew are such that s_0 makes up half of
the last state.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.small_blocks import normed
from decoders.heads.parts.taps import Target
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads

EPS = 1e-6


class ScaledNorm(nn.Module):
    """An RMS norm with scale and shift, as in the authors' code."""

    def __init__(self, width: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., w] -> [..., w]."""
        return normed(x, EPS) * self.weight + self.bias


def state_weight(depth: int) -> float:
    """sw: the share of a state that each depth keeps, so that half of s_0 is left after `depth` depths."""
    return 0.5 ** (0.5 / depth)


def token_weight(depth: int, inner: int) -> float:
    """ew: the factor of a token's embedding, which has mean square 1 / inner, relative to sw."""
    return math.sqrt((1 - state_weight(depth) ** 2) * inner / 2)


class MlpSpeculator(RecurrentHeads):
    """`depth` stages of width `inner` (0: the target's width). tied: one table, norm and vocabulary matrix
    for all depths, and one map between states. scale_input: s_0 is first normed to mean square 1 / 2.
    own_tables: the authors' tables of V rows; otherwise learned maps after the target's embeddings and in
    front of its vocabulary matrix.
    """

    kind = "mlp_speculator"

    def __init__(
        self,
        target: Target,
        depth: int = 4,
        inner: int = 0,
        tied: bool = True,
        scale_input: bool = True,
        own_tables: bool = False,
    ):
        super().__init__(
            target, depth=depth, inner=inner, tied=tied, scale_input=scale_input, own_tables=own_tables
        )
        width, words = target.width, len(target.head)
        inner, self.depth = inner or width, depth
        count = 1 if tied else depth
        self.scale_input, self.own_tables = scale_input, own_tables
        self.scale = token_weight(depth, inner) / state_weight(depth)
        maps = [(width, inner), *[(inner, inner)] * (depth - 1)][: 2 if tied else depth]
        self.proj = nn.ModuleList(nn.Linear(*sizes, bias=False) for sizes in maps)
        if own_tables:
            self.emb = nn.ModuleList(nn.Embedding(words, inner) for _ in range(count))
        else:
            self.emb = nn.ModuleList(nn.Linear(width, inner, bias=False) for _ in range(count))
        self.ln = nn.ModuleList(ScaledNorm(inner) for _ in range(count))
        self.head = nn.ModuleList(
            nn.Linear(inner, words if own_tables else width, bias=False) for _ in range(count)
        )
        for part in (*self.proj, *self.emb, *self.head):
            nn.init.normal_(part.weight, std=inner**-0.5)

    def start(self, summary: torch.Tensor) -> torch.Tensor:
        if not self.scale_input:
            return summary
        return normed(summary, EPS) / 2**0.5

    def token(self, tokens: torch.Tensor, k: int) -> torch.Tensor:
        """Embeddings [..., w] of tokens [...] at depth k, initially of mean square about 1 / w."""
        table = at(self.emb, k)
        if self.own_tables:
            return table(tokens)
        return table(normed(self.target.read(tokens), EPS) / self.target.width**0.5)

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        mixed = at(self.proj, k)(state) + self.scale * self.token(tokens, k)
        return F.gelu(at(self.ln, k)(mixed))

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        out = at(self.head, k)(state)
        return out if self.own_tables else self.target.logits(out)


def at(parts: nn.ModuleList, k: int) -> nn.Module:
    """The part of depth k; all depths beyond the last part share that one."""
    return parts[min(k, len(parts)) - 1]
