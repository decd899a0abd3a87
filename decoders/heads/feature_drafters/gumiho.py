"""Gumiho's drafter (Li et al., 2025): early tokens matter most, so the first two come from a serial network
of two layers, and later ones from small parallel networks.

    entry: F[E(token); feature], then two decoder layers with keys and values of their own: depths 1 and 2
    parallel network j reads [F[E(c_1); f_1]; F[E(c_2); f_2]] and predicts the feature for depth 2 + j

c_1, c_2 are the drafted tokens of depths 1 and 2; f_1, f_2 the features from which they were predicted.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.feature_drafters.feature_drafter import FeatureDrafter
from decoders.heads.parts.layers import DecoderLayer, Entries, Past, one_after_another
from decoders.heads.parts.module import cross_entropy, some_rows, with_uniform_noise
from decoders.heads.parts.taps import Taps, Target

SERIAL = 2  # depths that the serial network drafts
TOKEN_WEIGHT = 0.1  # of the cross-entropy; the feature's weight is 1


class Parallel(nn.Module):
    """SiLU(W v), then residual blocks x + SiLU(W x)."""

    def __init__(self, width: int, blocks: int):
        super().__init__()
        self.inner = nn.Linear(2 * width, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        """v [..., 2d] -> [..., d]."""
        x = F.silu(self.inner(v))
        for block in self.blocks:
            x = x + F.silu(block(x))
        return x


class Gumiho(FeatureDrafter):
    """`parallel` networks of `blocks` residual blocks each; intermediate: of the decoder layers."""

    kind = "gumiho"

    def __init__(self, target: Target, parallel: int = 3, blocks: int = 1, intermediate: int = 128):
        super().__init__(target, parallel=parallel, blocks=blocks, intermediate=intermediate)
        width, self.depth = target.width, SERIAL + parallel
        self.join = nn.Linear(2 * width, width)
        self.layers = nn.ModuleList(
            DecoderLayer(width, target.heads, intermediate, target.theta, target.eps, first=at == 0)
            for at in range(SERIAL)
        )
        self.networks = nn.ModuleList(Parallel(width, blocks) for _ in range(parallel))

    def reach(self, depth: int) -> int:
        """Root and path for the serial depths; later depths see only the pair."""
        return min(depth, SERIAL + 1)

    def joined(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([self.target.read(tokens), features], -1)).to(features.dtype)

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        return one_after_another(self.layers, x, positions, mask, past)

    def parallel_features(self, pairs: torch.Tensor) -> list[torch.Tensor]:
        """The features [..., d] of depths 3, 4, ... below pairs [..., 2d]."""
        return [network(pairs) for network in self.networks]

    def pair(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """The parallel networks' input [..., 2d] from c_1 and c_2 [..., 2] and f_1 and f_2 [..., 2, d]."""
        return self.joined(tokens, features).flatten(-2)

    def loss(self, taps: Taps) -> torch.Tensor:
        """For the serial part and each parallel network: smooth L1 to the target's states plus 0.1 times the
        cross-entropy under its distributions.
        """
        hidden = with_uniform_noise(taps.hidden, taps.tokens) if self.training else taps.hidden
        positions = torch.arange(hidden.shape[1] - 1, device=hidden.device)
        serial, _ = self.layer(self.joined(taps.tokens[:, 1:], hidden[:, :-1]), positions)
        total = self.apart(taps, serial, 1)
        rows = taps.tokens.shape[1] - 1 - SERIAL  # row n has f_1 in row n and f_2 in row n + 1
        tokens = taps.tokens[:, 2:].unfold(1, SERIAL, 1)[:, :rows]
        features = torch.stack([serial[:, at : at + rows] for at in range(SERIAL)], 2)
        for j, predicted in enumerate(self.parallel_features(self.pair(tokens, features)), start=1):
            total = total + self.apart(taps, predicted[:, : taps.tokens.shape[1] - SERIAL - j], SERIAL + j)
        return total

    def apart(self, taps: Taps, predicted: torch.Tensor, depth: int) -> torch.Tensor:
        """The loss of features predicted at a depth: row n against the target's state of token n + depth."""
        count = predicted.shape[1]
        rows = torch.arange(count, device=predicted.device)
        if self.training:
            rows = some_rows(taps.tokens, count)
        feature = F.smooth_l1_loss(predicted.float(), taps.hidden[:, depth : depth + count])
        p = taps.logits[:, rows + depth].float().softmax(-1)
        return feature + TOKEN_WEIGHT * cross_entropy(p, self.target.logits(predicted[:, rows]))

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        serial = self.unrolled(taps, min(depth, SERIAL))
        guesses = [self.words(states) for states in serial]
        if depth > SERIAL:
            rows = taps.rows(SERIAL)
            tokens = taps.tokens[:, 2:].unfold(1, SERIAL, 1)[:, :rows]
            features = torch.stack([states[:, :rows] for states in serial], 2)
            for j, predicted in enumerate(self.parallel_features(self.pair(tokens, features)), start=1):
                guesses.append(self.words(predicted[:, : taps.rows(SERIAL + j)]))
        return guesses[:depth]

    def memory(self) -> "Pairs":
        return Pairs()

    def begin(
        self,
        memory: "Pairs",
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [V] of depth 1."""
        memory.nodes = [Node(0, 0)]
        memory.ran = len(tokens)
        return super().begin(memory, hidden, tokens, states)

    def expand(self, memory: "Pairs", parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin` describes: logits [N, V] below new nodes. Only nodes of depths 1 and 2 run a
        network; deeper ones take their logits from the pair above them.
        """
        above = [memory.nodes[parent] for parent in parents]
        born = [
            Node(node.depth + 1, node.entry, token, node.token, node.below)
            for node, token in zip(above, tokens.tolist(), strict=True)
        ]
        memory.nodes += born
        serial = [at for at, node in enumerate(born) if node.depth == 1]
        pairs = [at for at, node in enumerate(born) if node.depth == SERIAL]
        memory.ran = len(serial) + len(pairs)
        logits = tokens.new_empty(len(born), len(self.target.head), dtype=memory.outputs.dtype)
        if serial:
            entered = len(memory.paths)
            logits[serial] = super().expand(memory, [0] * len(serial), tokens[serial])
            for at, place in enumerate(serial):
                born[place].entry = entered + at
        if pairs:
            read = torch.tensor([[born[at].before, born[at].token] for at in pairs], device=tokens.device)
            below = self.below_pairs(memory, [born[at].entry for at in pairs], read)  # [N, K, V]
            for at, row in zip(pairs, below, strict=True):
                born[at].below = row
        for at, node in enumerate(born):
            if node.depth >= SERIAL:
                logits[at] = node.below[node.depth - SERIAL]
        return logits

    def below_pairs(self, memory: Entries, firsts: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """Logits [N, K, V] of depths 3 to 2 + K below pairs of tokens [N, 2]; `firsts` are the entries in
        which the serial network read the first of each pair.
        """
        features = torch.stack([memory.outputs[[0] * len(firsts)], memory.outputs[firsts]], 1)
        predicted = torch.stack(self.parallel_features(self.pair(tokens, features)), 1)  # [N, K, d]
        return self.words(predicted)

    def feature_at(self, memory: "Pairs", number: int) -> torch.Tensor | None:
        """As `DraftModule.feature_at`, for nodes of the serial part; nothing reads the parallel networks'
        features.
        """
        node = memory.nodes[number]
        return memory.outputs[node.entry] if node.depth < SERIAL else None


@dataclass
class Node:
    """A drafted node: its depth, the entry of its ancestor of depth 1, its token and the one before it, and
    the logits [K, V] below the pair above it.
    """

    depth: int
    entry: int
    token: int = 0
    before: int = 0
    below: torch.Tensor | None = None


class Pairs(Entries):
    """Entries of the serial part, and all nodes of the tree, which goes deeper. `ran`: for how many nodes the
    last call ran a network.
    """

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.ran = 0
