"""A request for one forward over nodes of a token tree."""

from dataclasses import dataclass

import torch

from decoders.engine.injected_states import InjectedStates
from decoders.engine.kv_cache import Columns
from decoders.engine.layers import Layers
from decoders.engine.trimmed_head import TrimmedHead


@dataclass
class ForwardRequest:
    """One forward over N nodes: its inputs, and which outputs are wanted."""

    tokens: list[int]  # [N]
    positions: list[int]  # [N] depths in the tree
    columns: Columns  # where their keys and values go, and what each of them sees
    rows: list[int]  # indices of the nodes whose logits are wanted
    hidden: bool = False  # whether their last-layer states are wanted
    streams: bool = False  # whether the residual streams after each layer are wanted
    part: Layers | None = None  # the layers that run, all if None
    states: torch.Tensor | None = None  # [N, d] the stream that enters these layers
    embeddings: torch.Tensor | None = None  # [N, d] read in place of the tokens' own embeddings
    head: TrimmedHead | None = None  # computes the logits in place of the model's whole output matrix
    injected: InjectedStates | None = None  # states injected in the middle of the model

    @property
    def is_plain(self) -> bool:
        """Whether ordinary tokens run through the whole model and see whole slots; such forwards can be
        joined.
        """
        special = (self.part, self.states, self.embeddings, self.head, self.injected)
        whole = isinstance(self.columns.read, slice) or self.columns.read.ndim == 1
        return whole and all(one is None for one in special)

    @property
    def wants_all_rows(self) -> bool:
        """Whether the logits of all nodes are wanted, in order."""
        return self.rows == list(range(len(self.tokens)))
