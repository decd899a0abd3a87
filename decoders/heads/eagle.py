"""The feature drafter of EAGLE (Li et al., 2024): it guesses the target's next state, not its next token.

One decoder layer with keys and values of its own reads the state after token i together with token i + 1, and
says the state after token i + 1; the target's frozen head turns that into a distribution of token i + 2.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.layers import Attention, Entries, FeedForward, Past
from decoders.heads.module import ALL, DraftModule, Sees, cross_entropy
from decoders.heads.taps import Taps, Target

TOKEN_WEIGHT = 0.1  # of the cross-entropy, beside 1 for the state
NOISE = 0.1  # in training: uniform noise on the states it reads, in their standard deviations


class Eagle(DraftModule):
    """Entry i reads join[E(token i + 1); state i], then a layer like the target's without its first norm."""

    kind = "eagle"
    sees = Sees(ALL, root=True, path=True)

    def __init__(self, target: Target):
        super().__init__(target)
        width = target.width
        self.join = nn.Linear(2 * width, width)
        self.attention = Attention(width, target.heads, target.theta)
        self.norm = nn.RMSNorm(width, target.eps)
        self.feed = FeedForward(width, target.intermediate)

    def joined(self, tokens: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """What entries read: tokens [...] with the state in front of each [..., d]; [..., d]."""
        return self.join(torch.cat([self.target.read(tokens), hidden], -1)).to(hidden.dtype)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """The decoder layer; as `Attention.forward`."""
        mixed, past = self.attention(x, positions, mask, past)
        x = x + mixed
        return x + self.feed(self.norm(x)), past

    def loss(self, taps: Taps) -> torch.Tensor:
        """Smooth L1 to the target's states plus 0.1 times the cross-entropy under its distributions."""
        hidden = taps.hidden[:, :-1]
        if self.training:  # seeded by the batch, so that training can be interrupted and resumed
            random = torch.Generator(hidden.device).manual_seed(int(taps.tokens.sum()))
            noise = torch.rand(hidden.shape, generator=random, device=hidden.device) * 2 - 1
            hidden = hidden + NOISE * hidden.std() * noise
        positions = torch.arange(hidden.shape[1], device=hidden.device)
        predicted, _ = self.layer(self.joined(taps.tokens[:, 1:], hidden), positions)
        regression = F.smooth_l1_loss(predicted.float(), taps.hidden[:, 1:])
        return regression + TOKEN_WEIGHT * cross_entropy(taps.p[:, 1:], self.target.logits(predicted))

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """Depth k reads the states that depth k - 1 said: its entry at row n sees the true entries up to n
        and the drafted ones of the same row.
        """
        states, past, guesses, masks = taps.hidden, None, [], []
        length = taps.tokens.shape[1]
        for k in range(1, depth + 1):
            rows = max(0, length - 1 - k)
            masks = [mask[:rows] for mask in masks]
            own = torch.ones(rows, rows, dtype=torch.bool, device=states.device)
            masks.append(own.tril() if k == 1 else torch.eye(rows, dtype=torch.bool, device=states.device))
            positions = torch.arange(rows, device=states.device) + k - 1
            x = self.joined(taps.tokens[:, k : k + rows], states[:, :rows])
            states, past = self.layer(x, positions, torch.cat(masks, 1), past)
            guesses.append(self.target.logits(states))
        return guesses

    def begin(self, entries: Entries, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Logits [V] of depth 1. hidden [M, d]: the states of newly read tokens; tokens [M]: the token after
        each, the last of them the root. Whatever was drafted before is dropped.
        """
        return self.target.logits(entries.know(self.layer, self.joined(tokens, hidden)))

    def expand(self, entries: Entries, parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] below new nodes: tokens [N] drafted after the nodes `parents` (0: the root)."""
        x = self.joined(tokens, entries.outputs[parents])
        return self.target.logits(entries.draft(self.layer, x, parents))
