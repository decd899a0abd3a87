"""An output matrix with only some rows, which gives logits for these tokens alone and takes less time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.nn import functional as F

from decoders.engine.fast_product import Matrix


class TrimmedHead:
    """The rows `tokens` [k] of a model's output embedding: a copy, W' = W[S] (VocabTrim)."""

    def __init__(self, model: torch.nn.Module, tokens: Sequence[int]):
        self.module = model.get_output_embeddings()
        weight, bias = self.module.weight, getattr(self.module, "bias", None)
        self.tokens = torch.tensor(sorted(tokens), device=weight.device)
        self.vocabulary, self.rows = weight.shape[0], Matrix(weight.detach()[self.tokens].contiguous())
        self.bias = None if bias is None else bias.detach()[self.tokens]

    def __str__(self) -> str:
        """`1,024 of 4,096 tokens`."""
        return f"{len(self.tokens):,} of {self.vocabulary:,} tokens"

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] of last-layer states [N, d], -inf for the tokens that were left out."""
        return self.spread(self.rows.times(states))

    def spread(self, few: torch.Tensor) -> torch.Tensor:
        """Values [N, k] of the remaining tokens as [N, V], -inf elsewhere."""
        whole = torch.full((*few.shape[:-1], self.vocabulary), -torch.inf, dtype=few.dtype, device=few.device)
        return whole.index_copy_(-1, self.tokens, few)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While this is open, the model itself uses the trimmed matrix: its logits are [..., k]."""
        self.module.forward = lambda states: F.linear(states, self.rows.weight, self.bias)
        try:
            yield
        finally:
            del self.module.forward
