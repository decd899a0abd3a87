"""What EAGLE and its successors share: a drafter that reads the target's features and continues with its own.

Entry i reads the feature of token i together with token i + 1; its output stands for the feature of token
i + 1, and is read in its place where the target has not been. Knows no loss and no form of the layer.
"""

import torch

from decoders.heads.parts.layers import Entries, Past
from decoders.heads.parts.module import ALL, DraftModule, Sees
from decoders.heads.parts.taps import Taps, Target


class FeatureDrafter(DraftModule):
    """A module brings `joined` and `layer`, `features` if it reads more than the last state, and `words` if
    it has a head of its own.
    """

    sees = Sees(ALL, root=True, path=True)

    def __init__(self, target: Target, **settings):
        super().__init__(target, **settings)
        self.own_embedding: torch.nn.Embedding | None = None  # of published drafters that bring one

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Input embeddings [..., d] of tokens [...]: the target's, or its own."""
        return self.target.read(tokens) if self.own_embedding is None else self.own_embedding(tokens)

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """What entries read: tokens [...] with the feature in front of each [..., d]."""
        raise NotImplementedError

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """The entries' outputs [B, N, d] from what they read, x [B, N, ...]; as `Attention.forward`."""
        raise NotImplementedError

    def words(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of the entries' outputs [..., d]: the target's head."""
        return self.target.logits(states)

    def unrolled(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """The entries' outputs at depths 1 to `depth` along known texts, item k - 1 being [B, T - 1 - k, d].

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
        """As `DraftModule.begin` says: logits [N, V] below new nodes."""
        x = self.joined(tokens, memory.outputs[parents])
        return self.words(memory.draft(self.layer, x, parents))

    def feature_at(self, memory: Entries, number: int) -> torch.Tensor:
        return memory.outputs[number]
