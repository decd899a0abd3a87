"""The base of EAGLE and its successors: a drafter that reads the target's features and continues with its
own.

Entry i reads the feature of token i together with token i + 1; its output estimates the feature of token i +
1, and is read instead of it where the target has not run.
"""

from typing import Any

import torch

from decoders.heads.parts.layers import Entries, Past
from decoders.heads.parts.module import ALL, DraftModule, Sees
from decoders.heads.parts.taps import Taps, Target


class FeatureDrafter(DraftModule):
    """A subclass defines `joined` and `layer`, `features` if it reads more than the last state, and `words`
    if it has its own head.
    """

    sees = Sees(ALL, root=True, path=True)

    def __init__(self, target: Target, **settings: Any):
        super().__init__(target, **settings)
        self.own_embedding: torch.nn.Embedding | None = None  # of published drafters that have one

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Input embeddings [..., d] of tokens [...]: its own if it has any, else the target's."""
        return self.target.read(tokens) if self.own_embedding is None else self.own_embedding(tokens)

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """The entries' inputs, from tokens [...] and the feature [..., d] before each."""
        raise NotImplementedError

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """The entries' outputs [B, N, d] from their inputs x [B, N, ...]; as `Attention.forward`."""
        raise NotImplementedError

    def words(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of the entries' outputs [..., d]: the target's head."""
        return self.target.logits(states)

    def unrolled(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """The entries' outputs at depths k = 1 to `depth` along known texts; item k - 1 is [B, T - 1 - k, d].

        Depth k reads the outputs of depth k - 1: its entry at row n sees the true entries up to n and the
        drafted ones of the same row.
        """
        states, past, outputs = self.features(taps.hidden, taps.states), None, []
        for tokens, positions, mask in taps.levels(depth):
            x = self.joined(tokens, states[:, : len(positions)])
            states, past = self.layer(x, positions, mask, past)
            outputs.append(states)
        return outputs

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        return [self.words(states) for states in self.unrolled(taps, depth)]

    def begin(
        self,
        memory: Entries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [V] of depth 1."""
        return self.words(memory.know(self.layer, self.joined(tokens, self.features(hidden, states))))

    def expand(self, memory: Entries, parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin` describes: logits [N, V] below new nodes."""
        x = self.joined(tokens, memory.outputs[parents])
        return self.words(memory.draft(self.layer, x, parents))

    def feature_at(self, memory: Entries, number: int) -> torch.Tensor:
        return memory.outputs[number]
