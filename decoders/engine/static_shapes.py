"""Forwards of few shapes, so that a compiler or a CUDA graph captures each of them once.

The rows of a forward and the slots that it reads are rounded up to powers of two. Rows that fill up read
token 0 and write to a slot that belongs to nobody; slots that fill up are masked. The numbers are those of
the forward as it was, up to rounding. Knows requests and slots, no trees.
"""

from collections.abc import Callable
from typing import Any

import torch

from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.joint_forwards import as_tensor, by_kind, mask_of
from decoders.engine.kv_cache import Columns, SlotCache

ROWS = 256  # of a forward that is captured; longer ones, such as long prompts, run as they are
COLUMNS = 256  # slots that are read at least
SHAPES = 64  # that the compiler keeps: nine numbers of rows and up to seven of slots

Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | dict[str, torch.Tensor], bool], tuple]


class Captured:
    """The forwards of one model, compiled shape by shape. `step(tokens [N], positions [N], mask, hidden)` is
    one forward through `cache`: (logits [N, V], last-layer states [N, d] or None, queries or None).
    """

    def __init__(self, step: Step, cache: SlotCache, dtype: torch.dtype, **compiler: Any):
        """`compiler`: options of `torch.compile`. Takes one slot, and the memory of all that the cache may
        hold: a captured forward finds them at the same address each time.
        """
        self.cache, self.dtype = cache, dtype
        self.spare = cache.take(1)[0]
        cache.reserve()
        for store in cache.storage:
            torch._dynamo.mark_static_address(store)
        self.device = cache.storage[0].device
        limits = torch._dynamo.config.patch(recompile_limit=SHAPES, accumulated_recompile_limit=4 * SHAPES)
        self.step = limits(torch.compile(step, dynamic=False, **compiler))

    def takes(self, request: ForwardRequest) -> bool:
        """Whether this forward is captured: nothing but tokens through the whole model, and not too many."""
        return request.is_plain and not request.streams and len(request.tokens) <= ROWS

    def forward(self, request: ForwardRequest) -> Batch:
        """What the forward leaves, without the rows that filled up."""
        count, rows = len(request.tokens), bucket(len(request.tokens))
        filling = [0] * (rows - count)
        columns = rounded(request.columns, count, rows, self.spare, self.cache.fresh, self.device, self.dtype)
        self.cache.point(columns)
        tokens = torch.tensor(request.tokens + filling, device=self.device)
        positions = torch.tensor(request.positions + filling, device=self.device)
        with torch.inference_mode():
            logits, states, queries = self.step(tokens, positions, columns.mask, request.hidden)
            wanted = slice(0, count) if request.wants_all_rows else request.rows
            # cloned, since the next replay of a graph overwrites what this one has left
            return Batch(
                logits[wanted].clone(),
                states[wanted].clone() if request.hidden else None,
                None if queries is None else queries[:, :, :count].clone(),
            )


def rounded(
    columns: Columns,
    count: int,
    rows: int,
    spare: int,
    in_use: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Columns:
    """The columns of a forward over `count` rows, for one over `rows`: it reads the first slots of the cache,
    of which `in_use` were ever taken, and the rows that fill up write to `spare` and see it alone (a row that
    saw nothing would be no number, and so would all that read its slot).
    """
    total = bucket(in_use, COLUMNS)
    filling = torch.full((rows - count,), spare, device=device)
    write = torch.cat([as_tensor(columns.write, device), filling])

    def mask(kind: str | None) -> torch.Tensor:
        whole = torch.full((rows, total), torch.finfo(dtype).min, dtype=dtype, device=device)
        block = mask_of(columns, kind)
        whole[:count, columns.read] = 0.0 if block is None else block[0, 0]
        whole[count:, spare] = 0.0
        return whole[None, None]

    return Columns(write, slice(0, total), total, by_kind([columns], mask))


def bucket(count: int, least: int = 1) -> int:
    """The smallest power of two that is neither below `count` nor below `least`."""
    return max(least, 1 << (count - 1).bit_length())
