"""The feature drafter of EAGLE (Li et al., 2024): it predicts the target's next state instead of its next
token.

One decoder layer reads the state after token i together with token i + 1, and predicts the state after token
i + 1; the target's frozen head turns that into the distribution of token i + 2.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.feature_drafters.feature_drafter import FeatureDrafter
from decoders.heads.parts.fast_layers import Fast, FastBlock
from decoders.heads.parts.layers import Attention, FeedForward, LayerForm, Past
from decoders.heads.parts.module import cross_entropy, with_uniform_noise
from decoders.heads.parts.taps import Taps, Target

TOKEN_WEIGHT = 0.1  # of the cross-entropy; the state's weight is 1


class Eagle(FeatureDrafter):
    """Entry i is join[E(token i + 1); state i], followed by a layer like the target's without its first
    norm.
    """

    kind = "eagle"

    def __init__(
        self,
        target: Target,
        form: LayerForm | None = None,
        intermediate: int | None = None,
        eps: float | None = None,
        bias: bool = True,
    ):
        """form, intermediate and eps: of a published layer that differs from the target's; bias: whether
        `join` has one.
        """
        super().__init__(target)
        width = target.width
        self.join = nn.Linear(2 * width, width, bias=bias)
        self.attention = Attention(width, target.heads, target.theta, form=form)
        self.norm = nn.RMSNorm(width, eps or target.eps)
        self.feed = FeedForward(width, intermediate or target.intermediate)
        self.fast = Fast(FastBlock)

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([self.read(tokens), features], -1)).to(features.dtype)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        if len(x) == 1 and (fast := self.fast.of(self, x)) is not None:
            return fast.forward(x, x, positions, mask, past)
        mixed, past = self.attention(x, positions, mask, past)
        x = x + mixed
        return x + self.feed(self.norm(x)), past

    def loss(self, taps: Taps) -> torch.Tensor:
        """Smooth L1 to the target's states plus 0.1 times the cross-entropy under its distributions."""
        hidden = with_uniform_noise(taps.hidden, taps.tokens) if self.training else taps.hidden
        positions = torch.arange(hidden.shape[1] - 1, device=hidden.device)
        predicted, _ = self.layer(self.joined(taps.tokens[:, 1:], hidden[:, :-1]), positions)
        regression = F.smooth_l1_loss(predicted.float(), taps.hidden[:, 1:])
        return regression + TOKEN_WEIGHT * cross_entropy(taps.p[:, 1:], self.target.logits(predicted))
