"""Falcon's drafter (Gao et al., 2024): a feature drafter that predicts k tokens per pass.

Entry i reads [E(token i + 1); state i] through an LSTM and a decoder layer, and predicts the state of token i
+ k. Entries in a block of k see each other (relaxed causal mask); blocks are counted back from the newest
entry. Trained by glancing: some entries read their own answer.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import DecoderLayer, Past
from decoders.heads.parts.module import (
    ALL,
    DraftModule,
    Sees,
    cross_entropy,
    seeded,
    some_rows,
    with_uniform_noise,
)
from decoders.heads.parts.taps import Taps, Target

TOKEN_WEIGHT, HARD = 0.1, 0.1  # weight of the token loss; share of it for the target's most likely token
GLANCE = 0.4  # share of the wrong guesses whose answers are shown at the start of training; it falls to 0

State = tuple[torch.Tensor, torch.Tensor]  # the LSTM's, both [1, B, m]


class Falcon(DraftModule):
    """`block`: k; memory: width m of the LSTM, 0 for a linear map instead; intermediate: of the layer."""

    kind = "falcon"
    sees = Sees(ALL, root=True, path=True)

    def __init__(self, target: Target, block: int = 2, memory: int = 128, intermediate: int = 128):
        super().__init__(target, block=block, memory=memory, intermediate=intermediate)
        width, self.block = target.width, block
        self.lstm = nn.LSTM(2 * width, memory, batch_first=True) if memory else None
        self.join = nn.Linear(memory or 2 * width, width)
        self.layer = DecoderLayer(width, target.heads, intermediate, target.theta, target.eps, first=True)

    def reach(self, depth: int) -> int:
        """The path up to the previous block, since guesses within a block do not see each other."""
        return self.block * ((depth - 1) // self.block) + 1

    def read(
        self, tokens: torch.Tensor, states: torch.Tensor, before: State | None = None
    ) -> tuple[torch.Tensor, State | None]:
        """(the layer's input [B, N, d] for tokens [B, N] with the states [B, N, d] before them, the LSTM's
        state after them).
        """
        x = torch.cat([self.target.read(tokens), states], -1)
        if self.lstm is not None:
            x, before = self.lstm(x.to(self.lstm.weight_ih_l0.dtype), before)
        return self.join(x).to(states.dtype), before

    def loss(self, taps: Taps) -> torch.Tensor:
        """Smooth L1 to the target's states plus 0.1 times a token loss: 0.9 of the cross-entropy under its
        distributions and 0.1 of that of its most likely tokens. In training some answers are shown (section
        3.2).
        """
        k, rows = self.block, max(1, taps.tokens.shape[1] - 1 - self.block)
        hidden = with_uniform_noise(taps.hidden, taps.tokens) if self.training else taps.hidden
        tokens, states = taps.tokens[:, 1 : rows + 1], hidden[:, :rows]
        if self.training:
            tokens, states = self.glanced(taps, tokens, states)
        outputs = self.blockwise(tokens, states)
        at = self.loss_rows(taps.tokens, rows)
        p, logits = taps.logits[:, at + k].float().softmax(-1), self.target.logits(outputs[:, at])
        hard = F.cross_entropy(logits.flatten(0, 1).float(), p.argmax(-1).flatten())
        feature = F.smooth_l1_loss(outputs.float(), taps.hidden[:, k : k + rows])
        return feature + TOKEN_WEIGHT * ((1 - HARD) * cross_entropy(p, logits) + HARD * hard)

    def blockwise(self, tokens: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """The entries' outputs [B, N, d] in blocks counted from the first entry."""
        mask = relaxed(tokens.shape[1], self.block).to(tokens.device)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.layer(self.read(tokens, states)[0], positions, mask)[0]

    @torch.no_grad()
    def glanced(
        self, taps: Taps, tokens: torch.Tensor, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The entries' tokens and states with some answers shown, in runs from the starts of blocks: as many
        as a share, which falls during training, of a first pass's wrong guesses.
        """
        rows, k = tokens.shape[1], self.block
        at = some_rows(taps.tokens, rows)
        guesses = self.target.logits(self.blockwise(tokens, states)[:, at]).argmax(-1)
        wrong = (guesses != taps.logits[:, at + k].argmax(-1)).float().mean().item()
        run = max(1, k - 1)
        count = shown(wrong * rows, self.progress) // run
        starts = k * torch.randperm(rows // k, generator=seeded(tokens), device=tokens.device)[:count]
        places = (starts[:, None] + torch.arange(run, device=tokens.device)).flatten()
        tokens, states = tokens.clone(), states.clone()
        tokens[:, places] = taps.tokens[:, places + 1 + k]
        states[:, places] = taps.hidden[:, places + k].to(states.dtype)
        return tokens, states

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`, with blocks counted back from each row as in drafting: in the first pass
        row n sees the true entries up to n, in later ones also the blocks drafted after it.
        """
        k, tokens = self.block, taps.tokens
        batch, rows, device = len(tokens), tokens.shape[1] - 1, tokens.device
        places = torch.arange(rows, device=device)
        x, behind = self.read_stepwise(tokens[:, 1:], taps.hidden[:, :-1])
        _, past = self.layer(x, places)
        sees, nothing = (places <= places[:, None]), torch.zeros(rows, rows, dtype=torch.bool, device=device)
        newest = []  # outputs of the newest block
        for j in range(k):
            at = (places - k + 1 + j).clamp(min=0)
            out, _ = self.layer(x[:, at], at, torch.cat([sees, nothing], 1), past)
            newest.append(out)
        outputs = torch.stack(newest, 2)  # [B, R, k, d]
        guesses, masks = list(outputs.unbind(2)), [sees.repeat_interleave(k, 0)]
        own = places.repeat_interleave(k)
        while len(guesses) < depth:
            ahead = len(guesses) - k + 2 + torch.arange(k, device=device)
            seen = tokens[:, (places[:, None] + ahead).clamp(max=rows)]  # [B, R, k]
            x, behind = self.read(seen.view(-1, k), outputs.reshape(batch * rows, k, -1), behind)
            masks.append(own[:, None] == own)
            positions = (places[:, None] + ahead - 1).flatten()
            out, past = self.layer(x.view(batch, rows * k, -1), positions, torch.cat(masks, 1), past)
            outputs = out.view(batch, rows, k, -1)
            guesses += outputs.unbind(2)
        return [self.target.logits(g[:, : max(0, rows - d)]) for d, g in enumerate(guesses[:depth], start=1)]

    def read_stepwise(self, tokens: torch.Tensor, states: torch.Tensor) -> tuple[torch.Tensor, State | None]:
        """As `read`, with the LSTM's state after each entry, both [1, B * N, m]."""
        if self.lstm is None:
            return self.read(tokens, states)
        xs, behind, state = [], [], None
        for at in range(tokens.shape[1]):
            x, state = self.read(tokens[:, at : at + 1], states[:, at : at + 1], state)
            xs.append(x)
            behind.append(state)
        both = (torch.stack(part, 2).flatten(1, 2) for part in zip(*behind, strict=True))
        return torch.cat(xs, 1), tuple(both)

    def memory(self) -> "Blocks":
        return Blocks()

    def begin(
        self,
        memory: "Blocks",
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [V] of depth 1; keeps those of the whole first block."""
        x, behind = self.read(tokens[None], hidden[None], memory.behind)
        logits = self.target.logits(memory.know(self.layer, x[0], behind, self.block))  # [k, V]
        memory.nodes, memory.ran = [Node(0, 0, logits, [])], len(tokens)
        return logits[0]

    def expand(self, memory: "Blocks", parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin` describes: logits [N, V] below new nodes. Only nodes that end a block of k
        drafted tokens need a pass; the others take their logits from the block above them.
        """
        above = [memory.nodes[parent] for parent in parents]
        born = [
            Node(node.depth + 1, node.block, node.logits, [*node.tokens, token])
            for node, token in zip(above, tokens.tolist(), strict=True)
        ]
        memory.nodes += born
        ending = [node for node in born if len(node.tokens) == self.block]
        memory.ran = len(ending)
        if ending:
            first = len(memory.paths)
            read = torch.tensor([node.tokens for node in ending], device=tokens.device)
            logits = self.below(memory, [node.block for node in ending], read)
            for at, node in enumerate(ending):
                node.block, node.logits, node.tokens = first + at, logits[at], []
        return torch.stack([node.logits[len(node.tokens)] for node in born])

    def below(self, memory: "Blocks", parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """Logits [N, k, V] of the next k depths below blocks of drafted tokens [N, k], whose parents are the
        blocks `parents` (0: the newest known one).
        """
        before = [memory.states[parent] for parent in parents]
        both = None if before[0] is None else tuple(torch.cat(p, 1) for p in zip(*before, strict=True))
        x, behind = self.read(tokens, torch.stack([memory.outputs[parent] for parent in parents]), both)
        return self.target.logits(memory.draft(self.layer, x, behind, parents))

    def feature_at(self, memory: "Blocks", number: int) -> torch.Tensor:
        node = memory.nodes[number]
        return memory.outputs[node.block][len(node.tokens)]


@dataclass
class Node:
    """A drafted node: its depth, its newest complete block, that block's logits [k, V], and the fewer than k
    tokens after it.
    """

    depth: int
    block: int
    logits: torch.Tensor
    tokens: list[int]


class Blocks:
    """Falcon's memory for one lane: entries of the known text, then blocks of drafted ones.

    Block 0 is the newest k known entries; drafted blocks are numbered from 1 in the order of drafting.
    """

    def __init__(self) -> None:
        self.past: Past | None = None
        self.known = 0
        self.behind: State | None = None  # the LSTM's state after the newest known entry
        self.newest: torch.Tensor | None = None  # the layer's inputs [k - 1, d] at the newest known entries
        self.outputs: list[torch.Tensor] = []  # of each block [k, d]
        self.states: list[State | None] = []  # the LSTM's state after each block
        self.paths: list[list[int]] = [[]]  # for each block: the drafted blocks it sees, itself included
        self.nodes: list[Node] = []  # of the tree, in the order of drafting
        self.ran = 0  # how many entries or blocks the last call computed

    def know(self, layer: DecoderLayer, x: torch.Tensor, behind: State | None, k: int) -> torch.Tensor:
        """Drops what was drafted, appends known entries [M, d], and returns the newest block's outputs [k,
        d]. The previous k - 1 entries are read again, since their block has changed.
        """
        again = 0 if self.newest is None else len(self.newest)
        if again:
            x = torch.cat([self.newest, x])
        first = self.known - again
        if self.past is not None:
            self.past = tuple(part[:, :, :first] for part in self.past)
        self.known = first + len(x)
        positions = torch.arange(first, self.known, device=x.device)
        mask = torch.ones(
            len(x), self.known, dtype=torch.bool, device=x.device
        )  # only the newest block's outputs are used
        out, self.past = layer(x[None], positions, mask, self.past)
        self.newest, self.behind = x[len(x) - min(k - 1, len(x)) :], behind
        places = torch.arange(len(x) - k, len(x)).clamp(min=0)  # repeats the first entry of a short text
        self.outputs, self.states, self.paths = [out[0, places]], [behind], [[]]
        return self.outputs[0]

    def draft(
        self, layer: DecoderLayer, x: torch.Tensor, behind: State | None, parents: list[int]
    ) -> torch.Tensor:
        """Appends drafted blocks x [N, k, d] below the blocks `parents`; outputs [N, k, d]."""
        count, k, _ = x.shape
        first = len(self.paths)
        self.paths += [[*self.paths[parent], first + row] for row, parent in enumerate(parents)]
        new = self.paths[first:]
        positions = torch.tensor([self.known + (len(path) - 1) * k for path in new], device=x.device)
        positions = (positions[:, None] + torch.arange(k, device=x.device)).flatten()
        mask = torch.zeros(count, self.known + (len(self.paths) - 1) * k, dtype=torch.bool, device=x.device)
        mask[:, : self.known] = True
        for row, path in enumerate(new):
            for seen in path:
                mask[row, self.known + (seen - 1) * k :][:k] = True
        out, self.past = layer(
            x.reshape(1, count * k, -1), positions, mask.repeat_interleave(k, 0), self.past
        )
        self.outputs += out.view(count, k, -1).unbind(0)
        apart = [None] * count if behind is None else zip(*(p.split(1, 1) for p in behind), strict=True)
        self.states += apart
        return out.view(count, k, -1)


def relaxed(count: int, k: int) -> torch.Tensor:
    """The relaxed causal mask [N, N]: an entry sees all of its own block of k and of earlier blocks."""
    block = torch.arange(count) // k
    return block <= block[:, None]


def shown(wrong: float, progress: float) -> int:
    """How many answers are shown for this many wrong guesses: the share GLANCE (1 - progress)."""
    return int(wrong * GLANCE * (1 - progress) + 1e-9)
