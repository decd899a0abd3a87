"""The base class of draft modules: small networks on a frozen target that guess tokens beyond the next one.

A module defines its loss, its guesses along a known text (for training and measuring), and its guesses while
decoding: `begin`, and `expand` if they depend on the drafted path. Modules hold only weights; what one lane
has read and drafted is in the `memory` that the module creates for it.
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
    """What a guess depends on. Without `path`, a module gives one distribution per depth, the same on every
    branch of a tree.
    """

    states: str = NEWEST  # of the target: NEWEST, ALL (by its own attention) or NONE
    root: bool = False  # the newest token, which the target has chosen
    path: bool = False  # the drafted tokens above it
    layers: bool = False  # states of several layers, or the target's keys and values
    first: bool = False  # states after the target's first layers, which have read the drafted tokens too


class DraftModule(nn.Module):
    """Base class of all modules. `settings`: the arguments that a file stores to build it again; `reads`: the
    layers it taps; `depth`: how deep it can draft, None for no limit; `masks`: how many entries `begin`
    computes besides those of newly read tokens; `rank_accuracy`: for measured heads,
    how often the guess of each rank is right, by depth.
    """

    kind: str
    sees: Sees
    depth: int | None = None
    masks: int = 0
    reads: tuple[int, ...] = ()
    rank_accuracy: list[list[float]] | None = None
    rates = (6e-3, 3e-3)  # learning rates of Muon (inner matrices) and AdamW (the rest)
    progress = 0.0  # share of training that is done, which the trainer sets for losses that depend on it

    def __init__(self, target: Target, **settings: Any):
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
        """Logits [V] of depth 1, or [K, V] of all depths if the module does not see the path; drops what was
        drafted.

        hidden [M, d]: the target's states at newly read tokens (only the newest, M = 1, for modules that see
        no others); tokens [M]: the token after each, the last of them the root; states: layer -> residual
        stream [M, d], for modules with `reads`.

        Modules that see the path also have `expand(memory, parents, tokens)`: logits [N, V] below new nodes,
        with tokens [N] drafted after the nodes `parents` (0: the root; drafted ones are numbered from 1 in
        the order of drafting).
        """
        raise NotImplementedError

    def reach(self, depth: int) -> int:
        """How many tokens that the target has not read a guess of this depth depends on: the root, and
        drafted tokens above it.
        """
        return depth if self.sees.path else int(self.sees.root)

    def feature_at(self, memory: Any, number: int) -> torch.Tensor | None:
        """The feature [d] predicted after drafted node `number` (0: the root); None if the module predicts
        none.
        """
        return None

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The features [..., d] that the module reads, from the target's last states [..., d] and those after
        the layers `reads`; by default the last states.
        """
        return hidden

    def imitated(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The target's features [..., d] that its own features imitate; by default those that it reads."""
        return self.features(hidden, states)

    def loss(self, taps: Taps) -> torch.Tensor:
        """The training loss on one batch, a scalar."""
        raise NotImplementedError

    def loss_rows(self, tokens: torch.Tensor, rows: int) -> torch.Tensor:
        """The rows at which a loss over the vocabulary is computed: `some_rows` in training, else all."""
        return some_rows(tokens, rows) if self.training else torch.arange(rows, device=tokens.device)

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """Logits of depths k = 1 to `depth` at each place of known texts [B, T], given a correct path.

        Item k - 1 is [B, T - 1 - k, V]: row n predicts token n + 1 + k from the target's states up to token n
        and, if the module sees the path, the tokens up to n + k.
        """
        raise NotImplementedError


def cross_entropy(p: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of `logits` [..., V] under the distributions p [..., V]."""
    return F.cross_entropy(logits.flatten(0, -2).float(), p.flatten(0, -2))


def seeded(tokens: torch.Tensor) -> torch.Generator:
    """A generator seeded by the batch of tokens [B, T] alone, so that training can be interrupted and
    resumed.
    """
    return torch.Generator(tokens.device).manual_seed(int(tokens.sum()))


def with_uniform_noise(hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """States [B, T, d] of tokens [B, T] with uniform noise of NOISE times their standard deviation, for
    training: a drafter will read its own inexact states.
    """
    noise = torch.rand(hidden.shape, generator=seeded(tokens), device=hidden.device) * 2 - 1
    return hidden + NOISE * hidden.std() * noise


def some_rows(tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """A random quarter of the first `rows` rows, seeded by tokens [B, T], at which a training loss over the
    vocabulary is computed, since that costs more than all else.
    """
    order = torch.randperm(rows, generator=seeded(tokens), device=tokens.device)
    return order[: max(1, rows // 4)]
