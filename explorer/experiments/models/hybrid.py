"""A small language model of state-space layers and one attention layer that reads trees of drafted tokens:
the hybrid of STree (Wu et al., 2025).

Its memory of a text is a `Memory` for each state-space layer, and keys and values of the attention. A tree
after the text is read in one forward and leaves the memory unchanged; `after` then updates it along the
accepted path.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Attention, FeedForward, Past
from explorer.experiments.models.state_space import Memory, Read, StateSpace, ancestors, recent

THETA = 10000.0  # base of the rotary positions


@dataclass(frozen=True)
class Known:
    """The model's memory of a text of `length` tokens, layer by layer."""

    length: int
    layers: tuple[Memory | Past | None, ...]

    @property
    def size(self) -> int:
        """The number of values in the state-space layers, which does not grow with the text."""
        return sum(part.size for part in self.layers if isinstance(part, Memory))


@dataclass(frozen=True)
class Leaves:
    """The results of a forward over a tree: logits [B, N, V], and for each layer what `after` needs."""

    logits: torch.Tensor
    layers: tuple[Read | Past, ...]


class Hybrid(nn.Module):
    """Norm, layer, residual, `layers` times; layer number `attends` is attention, followed by an MLP (none if
    it is negative). The head shares the embeddings.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 96,
        layers: int = 4,
        attends: int = 2,
        heads: int = 4,
        state: int = 16,
    ):
        super().__init__()
        self.attends = attends
        self.embed = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(layers))
        self.layers = nn.ModuleList(
            Attention(width, heads, THETA) if at == attends else StateSpace(width, heads, state)
            for at in range(layers)
        )
        self.mlp_norm, self.mlp = nn.RMSNorm(width), FeedForward(width, 2 * width)
        self.last_norm = nn.RMSNorm(width)

    def empty(self, batch: int = 1) -> Known:
        """The memory of an empty text."""
        return Known(
            0, tuple(part.empty(batch) if isinstance(part, StateSpace) else None for part in self.layers)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, V] along texts [B, T]."""
        chain = list(range(-1, tokens.shape[1] - 1))
        return self.read(tokens, chain, self.empty(len(tokens))).logits

    def read(self, tokens: torch.Tensor, parents: list[int], known: Known) -> Leaves:
        """One forward over a tree of tokens [B, N] after a known text; parents: see `ancestors`."""
        seen, places = ancestors(parents), recent(parents)
        positions = known.length + seen.sum(-1) - 1
        states, left = self.embed(tokens), []
        for at, (norm, layer, past) in enumerate(zip(self.norms, self.layers, known.layers, strict=True)):
            if at == self.attends:
                before = seen.new_ones(len(parents), known.length)
                out, own = layer(norm(states), positions, torch.cat([before, seen], 1), past)
                states = states + out
                states = states + self.mlp(self.mlp_norm(states))
            else:
                out, own = layer(norm(states), past, seen, places)
                states = states + out
            left.append(own)
        return Leaves(F.linear(self.last_norm(states), self.embed.weight), tuple(left))

    def after(self, known: Known, left: Leaves, path: list[int]) -> Known:
        """The memory once the nodes `path`, root first, have become text."""
        memories: list[Memory | Past] = []
        for layer, past, own in zip(self.layers, known.layers, left.layers, strict=True):
            if isinstance(layer, StateSpace):
                memories.append(layer.after(past, own, path))
            else:
                kept = [*range(known.length), *(known.length + node for node in path)]
                memories.append(tuple(part[:, :, kept] for part in own))
        return Known(known.length + len(path), tuple(memories))

    def read_text(self, tokens: list[int]) -> tuple[Known, torch.Tensor]:
        """The memory of a text, and the logits [V] after it."""
        left = self.read(torch.tensor([tokens]), list(range(-1, len(tokens) - 1)), self.empty())
        return self.after(self.empty(), left, list(range(len(tokens)))), left.logits[0, -1]
