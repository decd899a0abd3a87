"""Trained input embeddings that make the frozen target predict several tokens: PaSS and PPD.

Both append their embeddings after a token, and the model reads them like tokens; they differ in training, and
in how strategies use the guesses. The model itself is unchanged.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.module import cross_entropy
from decoders.heads.parts.taps import Taps, Target
from decoders.heads.path_independent.lookahead_tokens import LookaheadTokens

DECAY = 0.8  # PPD: prompt token i has weight 0.8^(i - 1)


class PromptTokens(LookaheadTokens):
    """`depth` embeddings [K, d], which start as those of ordinary tokens, spread over the vocabulary."""

    rates = (6e-3, 1e-2)

    def __init__(self, target: Target, depth: int):
        super().__init__(target, depth)
        self.enters = (0,) * depth
        rows = torch.arange(1, depth + 1, device=target.embed.device) * (len(target.embed) // (depth + 1))
        self.embeddings = nn.Parameter(target.embed[rows].clone())

    def entering(self, taps: Taps, hosts: torch.Tensor, i: int) -> torch.Tensor:
        return self.embeddings[i - 1].expand(len(taps.tokens), len(hosts), -1)

    def place(self, scorer: Any, node: int, host: int, i: int) -> None:
        scorer.mixed[node] = self.embeddings[i - 1]


class PaSS(PromptTokens):
    """The look-ahead embeddings of PaSS (Monea et al., 2023), trained by cross-entropy on the texts' own
    tokens.
    """

    kind = "pass"

    def __init__(self, target: Target, depth: int = 4):
        super().__init__(target, depth)

    def loss(self, taps: Taps) -> torch.Tensor:
        """Mean over the slots of the cross-entropy of the text's token at the predicted place."""

        def one(logits: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(logits.float().flatten(0, 1), taps.tokens[:, places].flatten())

        return self.slot_loss(taps, one, [1 / self.depth] * self.depth)


class PPD(PromptTokens):
    """The prompt tokens of PPD (Chen et al., 2024), distilled from the target's own distributions."""

    kind = "ppd"

    def __init__(self, target: Target, depth: int = 3):
        super().__init__(target, depth)

    def loss(self, taps: Taps) -> torch.Tensor:
        """(1/n) sum over prompt tokens i of 0.8^(i - 1) KL(target's distribution || the prompt token's)."""

        def one(logits: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
            p = taps.p[:, places - 1]
            return cross_entropy(p, logits) + (p * p.clamp(min=1e-30).log()).sum(-1).mean()

        return self.slot_loss(taps, one, [DECAY**i / self.depth for i in range(self.depth)])
