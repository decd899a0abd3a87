"""Amphista's heads (Li et al., 2024): parallel, as in Medusa, but they attend to each other, and later ones
also read the root.

    stage 1: a decoder layer over h_1 ... h_n: a_n
    stage 2: a decoder layer over G[a_i; E(token i + 1)]: b_n
    head k: MLP_k of a_n (first half of the heads) or b_n, plus an embedding of k
    an encoder layer in which the heads attend to each other; then the vocabulary matrix
"""

import torch
from torch import nn

from decoders.heads.parts.layers import Entries, FeedForward, Past
from decoders.heads.parts.module import ALL, DraftModule, Sees, cross_entropy
from decoders.heads.parts.small_blocks import HEAD_SIZE, ResidualBlock, narrow_layer, normed
from decoders.heads.parts.taps import Taps, Target

DECAY = 0.8  # head k has weight 0.8^k in the loss


class HeadsAmongThemselves(nn.Module):
    """One encoder layer over the K heads at one position: each attends to all of them, or only to earlier
    ones if `causal`. Initialised to the identity.
    """

    def __init__(self, target: Target, heads: int, intermediate: int, causal: bool):
        super().__init__()
        width, self.heads, self.causal = target.width, heads, causal
        inner = heads * min(HEAD_SIZE, width)
        self.first_norm, self.norm = (nn.RMSNorm(width, target.eps) for _ in range(2))
        self.q, self.k, self.v = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.out, self.feed = nn.Linear(inner, width, bias=False), FeedForward(width, intermediate)
        for matrix in (self.out, self.feed.down):
            nn.init.zeros_(matrix.weight)

    def weights(self, x: torch.Tensor) -> torch.Tensor:
        """Attention weights [..., H, K, K] among the heads; x [..., K, d], normed."""
        q, k = (m(x).unflatten(-1, (self.heads, -1)).transpose(-2, -3) for m in (self.q, self.k))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device)
            scores = scores.masked_fill(ones.triu(1), -torch.inf)
        return scores.softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., K, d] -> [..., K, d]."""
        normed = self.first_norm(x)
        v = self.v(normed).unflatten(-1, (self.heads, -1)).transpose(-2, -3)
        x = x + self.out((self.weights(normed).to(v.dtype) @ v).transpose(-2, -3).flatten(-2))
        return x + self.feed(self.norm(x))


class Amphista(DraftModule):
    """`depth` heads; rank: of their blocks; heads, intermediate: of the stages' layers and of the encoder;
    causal: whether a head sees only earlier heads. All heads use the target's vocabulary matrix.
    """

    kind = "amphista"
    sees = Sees(ALL, root=True)

    def __init__(
        self,
        target: Target,
        depth: int = 4,
        rank: int = 48,
        heads: int = 2,
        intermediate: int = 64,
        causal: bool = False,
    ):
        super().__init__(
            target, depth=depth, rank=rank, heads=heads, intermediate=intermediate, causal=causal
        )
        width, self.depth = target.width, depth
        self.stages = nn.ModuleList(narrow_layer(target, heads, intermediate) for _ in range(2))
        self.fuse = nn.Linear(2 * width, width, bias=False)
        with torch.no_grad():  # the first stage alone
            self.fuse.weight.copy_(torch.eye(width, 2 * width))
        self.blocks = nn.ModuleList(ResidualBlock(width, rank) for _ in range(depth))
        self.places = nn.Parameter(torch.zeros(depth, width))
        self.among = HeadsAmongThemselves(target, heads, intermediate, causal)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """Both stages over entries [B, N, 2d], which concatenate the target's state and the embedding of the
        token after it: (a and b concatenated [B, N, 2d], keys and values of both); as `Attention.forward`.
        """
        hidden, token = x.chunk(2, -1)
        a, held = self.stages[0](hidden, positions, mask, None if past is None else past[:2])
        fused = self.fuse(torch.cat([a, token.to(a.dtype)], -1)).to(a.dtype)
        b, more = self.stages[1](fused, positions, mask, None if past is None else past[2:])
        return torch.cat([a, b], -1), held + more

    def entries(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The inputs [..., 2d] of `layer` from states [..., d] and the token [...] after each."""
        token = normed(self.target.read(tokens), self.target.eps)
        return torch.cat([hidden, token.to(hidden.dtype)], -1)

    def head_states(self, stages: torch.Tensor) -> torch.Tensor:
        """The heads' output states [..., K, d] from both stages' outputs, concatenated [..., 2d]."""
        a, b = stages.chunk(2, -1)
        half = self.depth // 2
        own = [block(a if k < half else b) for k, block in enumerate(self.blocks)]
        return self.among(torch.stack(own, -2) + self.places)

    def loss(self, taps: Taps) -> torch.Tensor:
        """Sum over the heads of 0.8^k times the cross-entropy under the target's distribution, at
        `loss_rows`.
        """
        count = taps.tokens.shape[1] - 1 - self.depth
        rows = self.loss_rows(taps.tokens, count)
        states = self.head_states(self.staged(taps)[:, rows])
        total = torch.zeros((), device=taps.tokens.device)
        for k in range(1, self.depth + 1):
            p = taps.p[:, rows + k]
            total = total + DECAY**k * cross_entropy(p, self.target.logits(states[:, :, k - 1]))
        return total

    def staged(self, taps: Taps) -> torch.Tensor:
        """Both stages along known texts [B, T - 1, 2d]; row n has read the root, token n + 1."""
        x = self.entries(taps.hidden[:, :-1], taps.tokens[:, 1:])
        return self.layer(x, torch.arange(x.shape[1], device=x.device))[0]

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        states, deepest = self.head_states(self.staged(taps)), min(depth, self.depth)
        return [self.target.logits(states[:, : taps.rows(k), k - 1]) for k in range(1, deepest + 1)]

    def begin(
        self,
        memory: Entries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V]."""
        return self.target.logits(self.head_states(memory.know(self.layer, self.entries(hidden, tokens))))
