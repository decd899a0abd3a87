"""Attention of a joint forward whose requests attend apart: requests of about as many rows are padded to one
shape and attend in one call.

One mask over the slots of all requests grows with the square of the number of requests; the padded masks
together grow linearly.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F


@dataclass(frozen=True)
class Padded:
    """B requests, whose rows follow each other in a forward, padded to R rows that see K columns each."""

    rows: slice  # of the forward
    read: torch.Tensor  # [B K] slots
    mask: torch.Tensor  # additive [B, 1, R, K]
    taken: torch.Tensor | None  # [B R] which of the rows stands where; None if all requests have R
    kept: torch.Tensor | None  # [N] where the rows stand

    def attend(self, queries: torch.Tensor, store: torch.Tensor, scaling: float) -> torch.Tensor:
        """The attention outputs [N, H D] of the rows, given the queries [N', H, D] of the whole forward and
        keys and values [2, Hkv, S, D].
        """
        requests, _, rows, columns = self.mask.shape
        heads, width = queries.shape[1:]
        kv_heads = store.shape[1]
        q = queries[self.rows] if self.taken is None else queries[self.rows].index_select(0, self.taken)
        q = q.view(requests, rows, heads, width).transpose(1, 2)
        seen = store.index_select(2, self.read).view(2, kv_heads, requests, columns, width).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            q, *seen, attn_mask=self.mask, scale=scaling, enable_gqa=heads != kv_heads
        )
        out = out.transpose(1, 2).reshape(requests * rows, heads * width)
        return out if self.kept is None else out.index_select(0, self.kept)


def size_class(rows: int) -> int:
    """Requests of one class are padded to one shape: of 1, 2, 3 to 4, 5 to 8, ... rows."""
    return (rows - 1).bit_length()


def padded(
    first: int,
    counts: list[int],
    reads: list[torch.Tensor],
    masks: list[torch.Tensor | None],
    dtype: torch.dtype,
) -> Padded:
    """Requests of counts[i] rows, the first of which is row `first` of the forward. reads: the slots [K_i]
    that each sees; masks: additive [1, 1, N_i, K_i], None if nothing is masked. dtype: that of the queries.
    """
    rows, columns = max(counts), max(map(len, reads))
    read = torch.zeros(len(counts), columns, dtype=torch.long)
    mask = torch.full((len(counts), 1, rows, columns), torch.finfo(dtype).min, dtype=dtype)
    for at, (count, slots, own) in enumerate(zip(counts, reads, masks, strict=True)):
        read[at, : len(slots)] = slots
        mask[at, 0, :count, : len(slots)] = 0.0 if own is None else own[0, 0]
    taken = kept = None
    if min(counts) < rows:
        places = [range(at * rows, at * rows + count) for at, count in enumerate(counts)]
        kept = torch.tensor([place for some in places for place in some])
        taken = torch.zeros(len(counts) * rows, dtype=torch.long)
        taken[kept] = torch.arange(len(kept))
    return Padded(slice(first, first + sum(counts)), read.view(-1), mask, taken, kept)
