"""Tables with states made by hand, and draft heads of random weights: exact answers for trained heads."""

from collections.abc import Callable
from functools import cache

import torch
from torch.nn import functional as F

from decoders.engine.capabilities import Capability
from decoders.heads import DraftModule, Target
from decoders.models.table_model import TableModel, TableScorer
from tests.helpers.tiny_models import random_modules

WIDTH, LAYERS = 8, 4


@cache
def streams_after(tokens: tuple[int, ...]) -> torch.Tensor:
    """Residual streams [L + 1, d] after a text: arbitrary, but always the same."""
    draw = torch.Generator().manual_seed(hash(("state", *tokens)) % 2**31)
    return torch.randn(LAYERS + 1, WIDTH, generator=draw)


def shared(vocabulary: int) -> Target:
    """What heads read of a target that is a table: random embeddings and a random head."""
    draw = torch.Generator().manual_seed(vocabulary)
    embed, head = (torch.randn(vocabulary, WIDTH, generator=draw) for _ in range(2))
    return Target(embed, head, torch.ones(WIDTH), 1e-5, LAYERS, heads=2, intermediate=16, theta=10000.0)


@cache
def heads_for(vocabulary: int) -> dict[str, DraftModule]:
    """The random heads of all tables with this number of tokens: no lane changes their weights."""
    return random_modules(shared(vocabulary))


class StreamScorer(TableScorer):
    """A table's scorer with states."""

    taps = False

    def streams(self, node: int) -> torch.Tensor:
        return streams_after(tuple(self.tree.text(node)))

    def hidden(self, node: int) -> torch.Tensor:
        return F.rms_norm(self.streams(node)[-1], (WIDTH,), eps=1e-5)

    def hidden_rows(self, nodes: list[int]) -> torch.Tensor:
        return torch.stack([self.hidden(n) for n in nodes])

    def prompt_streams(self) -> torch.Tensor:
        return torch.stack([self.streams(n) for n in range(self.tree.trunk)], 1)


class HeadedTable(TableModel):
    """A table whose states are vectors, with a random head of each kind that drafts from states."""

    capabilities = frozenset({Capability.FULL_DISTRIBUTION, Capability.HIDDEN_STATES})

    def __init__(self, table: Callable, vocabulary: int, eos: frozenset[int] = frozenset()):
        super().__init__(table, vocabulary, eos)
        self.heads = dict(heads_for(vocabulary))

    def attach(self, tree) -> StreamScorer:
        return StreamScorer(self, tree)
