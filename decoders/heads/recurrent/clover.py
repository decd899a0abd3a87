"""Clover's heads (Xiao et al., 2024): Medusa's heads made sequential by a cell that reads each drafted token,
after a decoder layer that summarises the text.

    s_0 = layer(h_1 ... h_n) at n;   s_j = s_{j-1} + cell(s_{j-1}, e_{j-1});   logits_j = W_lm MLP_j(s_j)
    cell(s, e): for each attention head cos(q, k) v,  q = W_Q norm(s), k = W_K e, v = W_V e

e_0 is the vector of the root, e_j that of the token drafted at depth j: normed rows of the target's
vocabulary matrix. With a single key a softmax would always be 1, so the weight is the cosine, as in the code
of the paper's successor.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Past
from decoders.heads.parts.module import ALL, Sees
from decoders.heads.parts.small_blocks import ResidualBlock, narrow_layer, normed
from decoders.heads.parts.taps import Target
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads

NOISE = 0.01  # of matrices that start as the identity


class Cell(nn.Module):
    """Attention of a state to one token, with a cosine as each head's weight."""

    def __init__(self, target: Target, silent: bool):
        """silent: whether its output starts at zero."""
        super().__init__()
        width, self.heads = target.width, target.heads
        self.norm = nn.RMSNorm(width, target.eps)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        for matrix in (self.q, self.k, self.v):
            near_identity(matrix)
        if silent:
            nn.init.zeros_(self.v.weight)

    def gates(self, state: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        """cos(q, k) of each head [..., H]."""
        q, k = self.q(self.norm(state)), self.k(token)
        split = (self.heads, -1)
        return F.cosine_similarity(q.unflatten(-1, split), k.unflatten(-1, split), dim=-1)

    def forward(self, state: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        """State and token's vector, both [..., d] -> [..., d]."""
        v = self.v(token).unflatten(-1, (self.heads, -1))
        return (self.gates(state, token)[..., None] * v).flatten(-2)


def near_identity(matrix: nn.Linear) -> None:
    """Initialises a matrix to the identity on its first inputs, with a little noise."""
    with torch.no_grad():
        matrix.weight.copy_(torch.eye(*matrix.weight.shape) + NOISE * torch.rand(matrix.weight.shape))


def vectors(target: Target, tokens: torch.Tensor) -> torch.Tensor:
    """Rows of the vocabulary matrix [..., d] of tokens [...], normed."""
    return normed(F.embedding(tokens, target.head), target.eps)


class Clover(RecurrentHeads):
    """`depth` heads with blocks of rank `rank`; heads, intermediate: of the layer."""

    kind = "clover"
    sees = Sees(ALL, root=True, path=True)

    def __init__(
        self, target: Target, depth: int = 3, rank: int = 64, heads: int = 2, intermediate: int = 64
    ):
        super().__init__(target, depth=depth, rank=rank, heads=heads, intermediate=intermediate)
        self.depth = depth
        self.augment = narrow_layer(target, heads, intermediate)
        self.cell = Cell(target, silent=True)
        self.blocks = nn.ModuleList(ResidualBlock(target.width, rank) for _ in range(depth))

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        return self.augment(x, positions, mask, past)

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        return state + self.cell(state, vectors(self.target, tokens).to(state.dtype))

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        return self.target.logits(self.blocks[k - 1](state))
