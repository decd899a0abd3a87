"""EAGLE-3's drafter (Li et al., 2025): several layers of the target are read, no feature is predicted, and it
is trained on what it says itself.

    g_i = F_3[a_i; b_i; c_i]               a, b, c: the residual stream that enters layers 2, L / 2 and L - 3
    o_{i+1} = g_i + attention[norm(E(token i + 1)); norm(g_i)], then a feed-forward layer
    logits of token i + 2 = W norm(o_{i+1})  over a vocabulary of its own; o stands for g where none is known
"""

import torch
from torch import nn

from decoders.heads.feature_drafter import FeatureDrafter
from decoders.heads.layers import Attention, FeedForward, Past
from decoders.heads.module import ALL, Sees, cross_entropy, some_rows
from decoders.heads.taps import Taps, Target

DECAY = 0.8  # depth k weighs 0.8^(k - 1) in the loss
# Logit of tokens outside of the draft's vocabulary: no probability beside any other, yet finite, so that a
# constraint which leaves only such tokens leaves a distribution.
OUTSIDE = -1e4


def tapped(layers: int) -> tuple[int, int, int]:
    """After how many layers of a target of `layers` the residual stream is read."""
    return min(2, layers - 1), layers // 2, max(layers - 3, layers // 2)


class Eagle3(FeatureDrafter):
    """`words_kept`: size of the draft's vocabulary, chosen by `keep`; steps: depths that the loss unrolls;
    intermediate: width of the feed-forward layer. `d2t` [W]: the target's id less the draft's.
    """

    kind = "eagle3"
    sees = Sees(ALL, root=True, path=True, layers=True)

    def __init__(
        self,
        target: Target,
        words_kept: int = 1024,
        reads: tuple[int, ...] = (),
        steps: int = 3,
        intermediate: int = 128,
    ):
        words_kept = min(words_kept, len(target.head))
        reads = tuple(reads) or tapped(target.layers)
        super().__init__(target, words_kept=words_kept, reads=reads, steps=steps, intermediate=intermediate)
        width, self.reads = target.width, reads
        self.fuse = nn.Linear(len(reads) * width, width, bias=False)
        self.token_norm, self.state_norm = (nn.RMSNorm(width, target.eps) for _ in range(2))
        self.attention = Attention(width, target.heads, target.theta, reads=2 * width)
        self.norm, self.last_norm = (nn.RMSNorm(width, target.eps) for _ in range(2))
        self.feed = FeedForward(width, intermediate)
        self.head = nn.Linear(width, words_kept, bias=False)
        self.register_buffer("d2t", torch.zeros(words_kept, dtype=torch.long))
        self.keep(torch.arange(words_kept))

    def keep(self, ids: torch.Tensor) -> None:
        """The draft's vocabulary are the target's ids [W], ascending; its head begins as the target's."""
        self.d2t.copy_(ids - torch.arange(len(ids)))
        with torch.no_grad():
            self.head.weight.copy_(self.target.head[ids])

    @property
    def kept(self) -> torch.Tensor:
        """The target's ids [W] of the draft's vocabulary."""
        return torch.arange(len(self.d2t), device=self.d2t.device) + self.d2t

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The fused layers [..., d]."""
        taken = torch.cat([states[layer] for layer in self.reads], -1)
        return self.fuse(taken.to(self.fuse.weight.dtype))

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Token and feature side by side [..., 2d]; the layer norms each."""
        return torch.cat([self.target.read(tokens).to(features.dtype), features], -1)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        token, feature = x.chunk(2, -1)
        both = torch.cat([self.token_norm(token), self.state_norm(feature)], -1)
        mixed, past = self.attention(both, positions, mask, past)
        x = feature + mixed
        return x + self.feed(self.norm(x)), past

    def words(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V], OUTSIDE for tokens that the draft's vocabulary lacks."""
        own = self.head(self.last_norm(states))
        return own.new_full((*own.shape[:-1], len(self.target.head)), OUTSIDE).index_copy_(-1, self.kept, own)

    def loss(self, taps: Taps) -> torch.Tensor:
        """Training-time test: the sum over depths k of 0.8^(k - 1) times the cross-entropy under the target's
        distribution, restricted to the draft's vocabulary; places whose most probable token is not in it
        do not count.
        """
        total = torch.zeros((), device=taps.tokens.device)
        for k, said in enumerate(self.unrolled(taps, self.settings["steps"]), start=1):
            rows = torch.arange(said.shape[1], device=said.device)
            if self.training:
                rows = some_rows(taps.tokens, said.shape[1])
            wanted = taps.logits[:, rows + k].float()
            at = torch.isin(wanted.argmax(-1), self.kept)
            if at.any():
                p, own = wanted[at][:, self.kept].softmax(-1), self.head(self.last_norm(said[:, rows][at]))
                total = total + DECAY ** (k - 1) * cross_entropy(p, own)
        return total
