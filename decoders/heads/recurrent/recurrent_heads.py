"""The base of Hydra, the MLP speculator, ReDrafter and Clover: heads that read the drafted path token by
token. A summary of the text becomes a state, each token of the path updates it, and the next one is predicted
from it.
"""

import torch

from decoders.heads.parts.layers import Entries, Past
from decoders.heads.parts.module import ALL, NEWEST, DraftModule, Sees, cross_entropy
from decoders.heads.parts.taps import Taps


class RecurrentHeads(DraftModule):
    """A subclass defines `after` and `words`; `layer` if its summary attends to all states, and `entries` if
    that layer reads more than these.
    """

    sees = Sees(NEWEST, root=True, path=True)
    steps = 4  # depths that the loss unrolls
    decay = 1.0  # depth k has weight decay^(k - 1) in the loss

    def start(self, summary: torch.Tensor) -> torch.Tensor:
        """The state [..., S] before any token, from the text's summary [..., d]."""
        return summary

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        """The states [..., S'] from which depth k is predicted, from those of the depth above and its tokens
        (k = 1: the roots).
        """
        raise NotImplementedError

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        """Logits [..., V] of depth k."""
        raise NotImplementedError

    def entries(self, features: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The inputs [..., d] of `layer` from the target's features and the token after each."""
        return features

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        """Summaries [B, N, d] of entries [B, N, d]; as `Attention.forward`."""
        raise NotImplementedError

    def summaries(self, taps: Taps) -> torch.Tensor:
        """The summaries [B, T - 1, d] of known texts: row n covers the text up to token n, and perhaps the
        root.
        """
        features = self.features(taps.hidden, taps.states)[:, :-1]
        if self.sees.states != ALL:
            return features
        positions = torch.arange(features.shape[1], device=features.device)
        return self.layer(self.entries(features, taps.tokens[:, 1:]), positions)[0]

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        state, guesses = self.start(self.summaries(taps)), []
        for k in range(1, min(depth, self.depth or depth) + 1):
            rows = taps.rows(k)
            state = self.after(state[:, :rows], taps.tokens[:, k : k + rows], k)
            guesses.append(self.words(state, k))
        return guesses

    def loss(self, taps: Taps) -> torch.Tensor:
        """The sum over depths of decay^(k - 1) times `loss_at`, at `loss_rows`."""
        steps = min(self.steps, self.depth or self.steps)
        count = taps.tokens.shape[1] - 1 - steps
        rows = self.loss_rows(taps.tokens, count)
        state, total = self.start(self.summaries(taps)[:, rows]), torch.zeros((), device=taps.tokens.device)
        for k in range(1, steps + 1):
            state = self.after(state, taps.tokens[:, rows + k], k)
            total = total + self.decay ** (k - 1) * self.loss_at(taps, state, rows, k)
        return total

    def loss_at(self, taps: Taps, state: torch.Tensor, rows: torch.Tensor, k: int) -> torch.Tensor:
        """The cross-entropy of depth k under the target's distributions at `rows` [R]; state [B, R, S]."""
        return cross_entropy(taps.p[:, rows + k], self.words(state, k))

    def memory(self) -> "States":
        return States()

    def begin(
        self,
        memory: "States",
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [V] of depth 1."""
        features = self.features(hidden, states)
        if self.sees.states == ALL:
            summary = memory.know(self.layer, self.entries(features, tokens))
        else:
            summary = features[-1]
        memory.states, memory.depths = [self.after(self.start(summary), tokens[-1], 1)], [1]
        return self.words(memory.states[0], 1)

    def expand(self, memory: "States", parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin` describes: logits [N, V] below new nodes, all of one depth."""
        k = memory.depths[parents[0]] + 1
        state = self.after(torch.stack([memory.states[parent] for parent in parents]), tokens, k)
        memory.states += state.unbind(0)
        memory.depths += [k] * len(parents)
        return self.words(state, k)


class States(Entries):
    """The states [S] at the root and at each drafted node from which their children are predicted, with these
    children's depths; and the entries of a layer that attends to all states.
    """

    def __init__(self) -> None:
        super().__init__()
        self.states: list[torch.Tensor] = []
        self.depths: list[int] = []
