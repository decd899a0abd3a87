"""The base class of draft modules: small networks on a frozen target that guess tokens beyond the next one.

A module defines its loss, its guesses along a known text (to train towards and to measure), and its guesses
while decoding: `begin`, and `expand` if they depend on the drafted path. Modules hold weights only; what one
lane has read and drafted lives in the `memory` that a module makes for it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Entries
from decoders.heads.parts.taps import Taps, Target

NOISE = 0.1  # see `noisy`
NEWEST, ALL, NONE = "the newest state", "all states", "no state"


@dataclass(frozen=True)
class Sees:
    """What a guess of depth j may look at besides its own weights. Who sees no path gives one distribution
    per depth, the same on every branch of a tree.
    """

    states: str = NEWEST  # of the target: NEWEST, ALL (by attention of its own) or NONE
    root: bool = False  # the token that the target has chosen, before anything is drafted
    path: bool = False  # the drafted tokens above it
    layers: bool = False  # states of several layers, or the target's keys and values
    first: bool = False  # what the target's first layers make of all tokens: they have read the draft too


class DraftModule(nn.Module):
    """Base of all modules. `settings` is what a file keeps to build it again; `reads` the layers it taps;
    `depth` how deep it can guess, None if there is no end. `rank_accuracy`, of measured heads, how often the
    guess of each rank is right, depth by depth.
    """

    kind: str
    sees: Sees
    depth: int | None = None
    reads: tuple[int, ...] = ()
    rank_accuracy: list[list[float]] | None = None
    rates = (6e-3, 3e-3)  # learning rates of Muon (inner matrices) and AdamW (the rest)
    progress = 0.0  # share of the training that is over; the trainer sets it, for losses that change with it

    def __init__(self, target: Target, **settings):
        super().__init__()
        self.target, self.settings = target, settings  # `target` is no nn.Module, so it is not saved

    def memory(self) -> Any:
        """An empty memory of what one lane has read and drafted."""
        return Entries()

    def begin(
        self,
        memory: Any,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Logits [V] of depth 1, of who sees no path logits [K, V] of all depths; drops what was drafted.

        hidden [M, d]: the target's states at newly read tokens, of who sees the newest state at the last
        alone; tokens [M]: the token after each, the last of them the root; states: of modules with `reads`,
        the residual streams [M, d] by layer. `expand(memory, parents, tokens)`, of who sees the path, gives
        logits [N, V] below new nodes: tokens [N] drafted after the nodes `parents` (0: the root; drafted ones
        count from 1 in the order of their drafting).
        """
        raise NotImplementedError

    def reach(self, depth: int) -> int:
        """How many of the tokens that the target has not read a guess of that depth looks at: the root, then
        the drafted path above it.
        """
        return depth if self.sees.path else int(self.sees.root)

    def feature_at(self, memory: Any, number: int) -> torch.Tensor | None:
        """The feature [d] that it predicted after a drafted node (0: the root); None if it predicts none."""
        return None

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """What it reads of the target [..., d] out of its last states [..., d] and those after the layers
        `reads`: the last ones.
        """
        return hidden

    def imitated(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """What of the target its own features stand for [..., d]: as a rule what it reads."""
        return self.features(hidden, states)

    def loss(self, taps: Taps) -> torch.Tensor:
        """The training loss on one batch, a scalar."""
        raise NotImplementedError

    def loss_rows(self, tokens: torch.Tensor, rows: int) -> torch.Tensor:
        """Where a loss over the vocabulary is taken: at `some_rows` in training, at all of them otherwise."""
        return some_rows(tokens, rows) if self.training else torch.arange(rows, device=tokens.device)

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """Guesses of depths 1 to `depth` at each place of known texts [B, T], the path above being right.

        Item k - 1 is [B, T - 1 - k, V]: its row n guesses token n + 1 + k, having read the target's states up
        to token n and, if the module is path-dependent, tokens up to n + k.
        """
        raise NotImplementedError


def cross_entropy(p: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of `logits` [..., V] under the distributions p [..., V]."""
    return F.cross_entropy(logits.flatten(0, -2).float(), p.flatten(0, -2))


def seeded(tokens: torch.Tensor) -> torch.Generator:
    """Random numbers that hang on the batch of tokens [B, T] alone, so that training can be interrupted and
    resumed.
    """
    return torch.Generator(tokens.device).manual_seed(int(tokens.sum()))


def noisy(hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """States [B, T, d] of tokens [B, T] with uniform noise of NOISE times their standard deviation: what a
    drafter reads in training, since it will read its own inexact ones.
    """
    noise = torch.rand(hidden.shape, generator=seeded(tokens), device=hidden.device) * 2 - 1
    return hidden + NOISE * hidden.std() * noise


def some_rows(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """Which of the first `rows` rows of tokens [B, T] the vocabulary's part of a training loss is taken from:
    a random quarter, since that part costs more than all others.
    """
    order = torch.randperm(rows, generator=seeded(tokens), device=tokens.device)
    return order[: max(1, rows // 4)]
