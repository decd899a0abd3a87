"""Chimera's drafter (Zeng et al., 2024): short-range context by trigrams, long-range by one layer over the
target's states.

    trigram of token i: [E(i - 2); E(i - 1); E(i)] through a residual SiLU block and a linear map to width d
    g_t: one decoder layer's output after  h_1 ... h_n, trigram(root), trigram(c_1) ... trigram(c_{t-1})
    head t: logits = A_t [h_n; g_t]
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import DecoderLayer, Entries
from decoders.heads.parts.module import ALL, DraftModule, Sees, cross_entropy, some_rows
from decoders.heads.parts.taps import Taps, Target

GRAM = 3


class Chimera(DraftModule):
    """`depth` heads. A_t is the target's head after a map from 2d to d: an elementwise scale of h and g,
    which starts at 1, plus a low-rank map, which starts at zero. The trigram block of width 3d has the same
    rank.
    """

    kind = "chimera"
    sees = Sees(ALL, root=True, path=True)

    def __init__(self, target: Target, depth: int = 4, rank: int = 64, intermediate: int = 128):
        super().__init__(target, depth=depth, rank=rank, intermediate=intermediate)
        width, self.depth = target.width, depth
        self.narrow, self.widen = nn.Linear(GRAM * width, rank, bias=False), nn.Linear(rank, GRAM * width)
        self.gram = nn.Linear(GRAM * width, width)
        self.layer = DecoderLayer(width, target.heads, intermediate, target.theta, target.eps)
        self.scales = nn.ParameterList(torch.ones(2 * width) for _ in range(depth))
        self.inner = nn.ModuleList(nn.Linear(2 * width, rank, bias=False) for _ in range(depth))
        self.outer = nn.ModuleList(nn.Linear(rank, width, bias=False) for _ in range(depth))
        for change in self.outer:
            nn.init.zeros_(change.weight)

    def trigrams(self, grams: torch.Tensor) -> torch.Tensor:
        """Features [..., d] of three tokens each [..., 3], the newest last."""
        x = self.target.read(grams).flatten(-2)
        return self.gram(x + F.silu(self.widen(self.narrow(x))))

    def head(self, t: int, hidden: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of head t (from 1) on the target's last state and g_t, both [..., d]."""
        both = torch.cat([hidden.to(g.dtype), g], -1)
        own, seen = (both * self.scales[t - 1]).chunk(2, -1)
        return self.target.logits(own + seen + self.outer[t - 1](self.inner[t - 1](both)))

    def summaries(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """g_t for depths t = 1 to `depth` along known texts. Item t - 1 is [B, T - t, d]: row n follows the
        target's states up to token n and the trigrams of tokens n + 1 to n + t.
        """
        length, device = taps.tokens.shape[1], taps.tokens.device
        positions = torch.arange(length, device=device)
        _, past = self.layer(taps.hidden, positions)
        x = self.trigrams(grams(taps.tokens))
        back = positions[:, None] - positions  # how far each column is behind a row
        outputs = []
        for t in range(1, depth + 1):
            mask = torch.cat([back >= t, (back >= 0) & (back < t)], 1)
            outputs.append(self.layer(x, positions, mask, past)[0][:, t:])
        return outputs

    def loss(self, taps: Taps) -> torch.Tensor:
        """For each head, the cross-entropy under the target's distribution plus the mean squared distance of
        g_t from the target's state after the same tokens.
        """
        total = torch.zeros((), device=taps.tokens.device)
        for t, g in enumerate(self.summaries(taps, self.settings["depth"]), start=1):
            rows = torch.arange(g.shape[1], device=g.device)
            if self.training:
                rows = some_rows(taps.tokens, g.shape[1])
            p = taps.logits[:, rows + t].float().softmax(-1)
            logits = self.head(t, taps.hidden[:, rows], g[:, rows])
            total = total + cross_entropy(p, logits) + F.mse_loss(g.float(), taps.hidden[:, t:])
        return total

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        return [
            self.head(t, taps.hidden[:, : taps.rows(t)], g[:, : taps.rows(t)])
            for t, g in enumerate(self.summaries(taps, min(depth, self.settings["depth"])), start=1)
        ]

    def memory(self) -> "Trigrams":
        return Trigrams()

    def begin(
        self,
        memory: "Trigrams",
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [V] of depth 1."""
        memory.know(self.layer, hidden)
        memory.last = hidden[-1]
        newest = memory.tails[0] if memory.tails else []
        memory.tails = [[*newest, *tokens.tolist()][-GRAM:]]
        return self.logits_below(memory, [0], memory.tails)[0]

    def expand(self, memory: "Trigrams", parents: list[int], tokens: torch.Tensor) -> torch.Tensor:
        """As `DraftModule.begin` says: logits [N, V] below new nodes, all of one depth."""
        tails = [[*memory.tails[p], t][-GRAM:] for p, t in zip(parents, tokens.tolist(), strict=True)]
        memory.tails += tails
        return self.logits_below(memory, [parent + 1 for parent in parents], tails)

    def logits_below(self, memory: "Trigrams", parents: list[int], tails: list[list[int]]) -> torch.Tensor:
        """Logits [N, V] after new entries with the trigrams of these last tokens."""
        read = torch.tensor([padded(tail) for tail in tails], device=memory.last.device)
        g = memory.draft(self.layer, self.trigrams(read), parents)
        return self.head(len(memory.paths[-1]), memory.last.expand_as(g), g)


class Trigrams(Entries):
    """Entries of known tokens hold the target's states, drafted ones trigrams, of which the root's is the
    first.

    `tails`: the last tokens of the text, up to three, at the root and at each drafted node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last: torch.Tensor | None = None  # the target's newest state [d]
        self.tails: list[list[int]] = []


def padded(tail: list[int]) -> list[int]:
    """The trigram of a text's last tokens; if there are fewer than three, the newest one is repeated."""
    return [tail[0]] * (GRAM - len(tail)) + tail if len(tail) != 2 else [tail[0], tail[1], tail[1]]


def grams(tokens: torch.Tensor) -> torch.Tensor:
    """The trigrams [B, T, 3] of tokens [B, T], the newest last. The second token, the first that can be a
    root, is padded as in `padded`; the row before it is not used.
    """
    second = tokens[:, 1:2]
    rows = torch.cat([second, second, second, tokens[:, 1:]], 1).unfold(1, GRAM, 1)[:, : tokens.shape[1]]
    rows = rows.clone()
    rows[:, 2:3, 1] = tokens[:, 2:3]
    return rows
