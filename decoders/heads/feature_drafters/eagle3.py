"""EAGLE-3's drafter (Li et al., 2025): it reads several layers of the target, predicts no features, and is
trained on its own outputs.

    g_i = F_3[a_i; b_i; c_i]               a, b, c: the residual stream that enters layers 2, L / 2 and L - 3
    o_{i+1} = g_i + attention[norm(E(token i + 1)); norm(g_i)], then a feed-forward layer
    logits of token i + 2 = W norm(o_{i+1})  over its own vocabulary; o replaces g where none is known
"""

from dataclasses import dataclass

import torch
from torch import nn

from decoders.heads.feature_drafters.feature_drafter import FeatureDrafter
from decoders.heads.parts.fast_layers import Fast, FastBlock
from decoders.heads.parts.layers import Attention, FeedForward, LayerForm, Past
from decoders.heads.parts.module import ALL, Sees, cross_entropy, some_rows
from decoders.heads.parts.taps import Taps, Target

DECAY = 0.8  # depth k has weight 0.8^(k - 1) in the loss
# Logit of tokens outside the draft's vocabulary: negligible probability, but finite, so that a constraint
# that leaves only such tokens still leaves a distribution.
OUTSIDE = -1e4


def tapped(layers: int) -> tuple[int, int, int]:
    """The layers (counts of layers run) after which the residual stream of a target with `layers` layers is
    read.
    """
    return min(2, layers - 1), layers // 2, max(layers - 3, layers // 2)


def over_all_tokens(own: torch.Tensor, kept: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Logits [..., V] of logits [..., W] for the tokens kept [W]; OUTSIDE for all others."""
    return own.new_full((*own.shape[:-1], vocabulary), OUTSIDE).index_copy_(-1, kept, own)


@dataclass(frozen=True)
class Published:
    """How published drafters differ: width, attention and eps; whether the residual is taken after the
    feature's norm or before it; the norms before the fusion (0; 1 over all layers read; or one each); whether
    outputs that are read again pass the last norm first (EAGLE-3.1).
    """

    width: int
    form: LayerForm | None
    eps: float
    norm_before_residual: bool = False
    norms_before: int = 0
    norm_output: bool = False


class Eagle3(FeatureDrafter):
    """`words_kept`: size W of the draft's vocabulary, chosen by `keep`; steps: depths that the loss unrolls;
    intermediate: width of the feed-forward layer. `d2t` [W]: the target's id minus the draft's.
    """

    kind = "eagle3"
    sees = Sees(ALL, root=True, path=True, layers=True)

    def __init__(
        self,
        target: Target,
        words_kept: int = 2048,
        reads: tuple[int, ...] = (),
        steps: int = 3,
        intermediate: int = 128,
        published: "Published | None" = None,
    ):
        """published: the differences of a published drafter."""
        words_kept = min(words_kept, len(target.head))
        reads = tuple(reads) or tapped(target.layers)
        super().__init__(target, words_kept=words_kept, reads=reads, steps=steps, intermediate=intermediate)
        own = published or Published(target.width, None, target.eps)
        width, eps, self.reads, self.published = own.width, own.eps, reads, own
        self.fuse = nn.Linear(len(reads) * target.width, width, bias=False)
        self.token_norm, self.state_norm = (nn.RMSNorm(width, eps) for _ in range(2))
        self.attention = Attention(width, target.heads, target.theta, reads=2 * width, form=own.form)
        self.norm, self.last_norm = (nn.RMSNorm(width, eps) for _ in range(2))
        self.feed = FeedForward(width, intermediate)
        self.fast = Fast(FastBlock)
        self.head = nn.Linear(width, words_kept, bias=False)
        self.before_fuse = nn.Identity()
        if own.norms_before:  # one over all layers read, or one for each
            sizes = [len(reads) * target.width] if own.norms_before == 1 else [target.width] * len(reads)
            self.before_fuse = nn.ModuleList(nn.RMSNorm(size, eps) for size in sizes)
        self.register_buffer("d2t", torch.zeros(words_kept, dtype=torch.long))
        if width == target.width:
            self.keep(torch.arange(words_kept))

    def keep(self, ids: torch.Tensor) -> None:
        """Sets the draft's vocabulary to these ids [W] of the target, ascending; its head starts as the
        target's.
        """
        self.d2t.copy_(ids - torch.arange(len(ids)))
        with torch.no_grad():
            self.head.weight.copy_(self.target.head[ids])

    @property
    def kept(self) -> torch.Tensor:
        """The draft's vocabulary as the target's ids [W]."""
        return torch.arange(len(self.d2t), device=self.d2t.device) + self.d2t

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The fused layers [..., d]."""
        taken = torch.cat([states[layer] for layer in self.reads], -1).to(self.fuse.weight.dtype)
        if norms := self.published.norms_before:
            parts = zip(self.before_fuse, taken.chunk(norms, -1), strict=True)
            taken = torch.cat([norm(part) for norm, part in parts], -1)
        return self.fuse(taken)

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Token and feature concatenated [..., 2d]; the layer norms each."""
        return torch.cat([self.read(tokens).to(features.dtype), features], -1)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        token, feature = x.chunk(2, -1)
        normed = self.state_norm(feature)
        both = torch.cat([self.token_norm(token), normed], -1)
        before = normed if self.published.norm_before_residual else feature
        if len(x) == 1 and (fast := self.fast.of(self, x)) is not None:
            x, past = fast.forward(both, before, positions, mask, past)
        else:
            mixed, past = self.attention(both, positions, mask, past)
            x = before + mixed
            x = x + self.feed(self.norm(x))
        return self.last_norm(x) if self.published.norm_output else x, past

    def own_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., W] over the draft's vocabulary."""
        return self.head(states if self.published.norm_output else self.last_norm(states))

    def words(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V], OUTSIDE for tokens that the draft's vocabulary lacks."""
        return over_all_tokens(self.own_logits(states), self.kept, len(self.target.head))

    def loss(self, taps: Taps) -> torch.Tensor:
        """Training-time test (the paper's term): the sum over depths k of 0.8^(k - 1) times the cross-entropy
        under the target's distribution restricted to the draft's vocabulary, without places whose most likely
        token is not in it.
        """
        total = torch.zeros((), device=taps.tokens.device)
        for k, features in enumerate(self.unrolled(taps, self.settings["steps"]), start=1):
            rows = torch.arange(features.shape[1], device=features.device)
            if self.training:
                rows = some_rows(taps.tokens, features.shape[1])
            wanted = taps.logits[:, rows + k].float()
            at = torch.isin(wanted.argmax(-1), self.kept)
            if at.any():
                p, own = wanted[at][:, self.kept].softmax(-1), self.own_logits(features[:, rows][at])
                total = total + DECAY ** (k - 1) * cross_entropy(p, own)
        return total
