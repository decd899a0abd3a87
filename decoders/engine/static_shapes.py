"""Forwards of few shapes, so that each shape is recorded only once as a CUDA graph, compiled or not.

The numbers of rows and of slots read are rounded up to powers of two. Padding rows read token 0 and write to
a spare slot; padding slots are masked. The numbers equal those of the original forward up to rounding.
"""

from collections.abc import Callable
from typing import Any

import torch

from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.joint_forwards import as_tensor, by_kind, mask_of
from decoders.engine.kv_cache import Columns, SlotCache

ROWS = 256  # at most in a captured forward; larger ones, such as long prompts, run without capture
COLUMNS = 256  # slots that are read at least
WARM_UP = 2  # runs of a shape before it is recorded
SHAPES = 64  # that the compiler keeps: nine counts of rows times up to seven of slots

Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | dict[str, torch.Tensor], bool], tuple]


class Captured:
    """The forwards of one model, recorded shape by shape. `step(tokens [N], positions [N], mask, hidden)` is
    one forward through `cache`: (logits [N, V], last-layer states [N, d] or None, queries or None).
    """

    def __init__(self, step: Step, cache: SlotCache, dtype: torch.dtype, **compiler: Any):
        """`compiler`: options of `torch.compile`; without any, the step is recorded uncompiled. Allocates one
        spare slot, and memory for all slots of the cache, since a recorded forward needs the same addresses
        each time.
        """
        self.cache, self.dtype = cache, dtype
        self.spare = cache.take(1)[0]
        cache.reserve()
        self.device = cache.storage[0].device
        self.step = compiled(step, cache, compiler) if compiler else step
        self.graphs: Graphs | None = Graphs(self.step, cache) if self.device.type == "cuda" else None

    def takes(self, request: ForwardRequest) -> bool:
        """Whether this forward is captured: ordinary tokens through the whole model, at most ROWS."""
        return request.is_plain and not request.streams and len(request.tokens) <= ROWS

    @torch.inference_mode()
    def forward(self, request: ForwardRequest) -> Batch:
        """The results of the forward, without the padding rows."""
        count, rows = len(request.tokens), bucket(len(request.tokens))
        filling = [0] * (rows - count)
        columns = padded_columns(
            request.columns, count, rows, self.spare, self.cache.fresh, self.device, self.dtype
        )
        tokens = torch.tensor(request.tokens + filling, device=self.device)
        positions = torch.tensor(request.positions + filling, device=self.device)
        if self.graphs is None:
            self.cache.point(columns)
            logits, states, queries = self.step(tokens, positions, columns.mask, request.hidden)
        else:
            logits, states, queries = self.graphs.run(tokens, positions, columns, request.hidden)
        wanted = slice(0, count) if request.wants_all_rows else request.rows
        # cloned, since the next replay of a graph overwrites these outputs
        return Batch(
            logits[wanted].clone(),
            states[wanted].clone() if request.hidden else None,
            None if queries is None else queries[:, :, :count].clone(),
        )


def compiled(step: Step, cache: SlotCache, compiler: dict[str, Any]) -> Step:
    """`step`, compiled once for each shape."""
    for store in cache.storage:
        torch._dynamo.mark_static_address(store)
    limits = torch._dynamo.config.patch(recompile_limit=SHAPES, accumulated_recompile_limit=4 * SHAPES)
    return limits(torch.compile(step, dynamic=False, **compiler))


class Graphs:
    """A CUDA graph for each shape of `step`: recorded when the shape first occurs, replayed from then on. A
    replay is one launch in place of hundreds.
    """

    def __init__(self, step: Step, cache: SlotCache):
        self.step, self.cache = step, cache
        self.pool = torch.cuda.graph_pool_handle()
        self.recorded: dict[tuple, tuple] = {}  # shape -> (graph, its outputs, its inputs)

    def run(self, tokens: torch.Tensor, positions: torch.Tensor, columns: Columns, hidden: bool) -> tuple:
        """The outputs of `step`; the next run overwrites them."""
        masks = columns.mask if isinstance(columns.mask, dict) else {"": columns.mask}
        inputs = [tokens, positions, columns.write, *masks.values()]
        key = (len(tokens), columns.count, hidden, *masks)
        if key not in self.recorded:
            self.recorded[key] = *self._record(tokens, positions, columns, hidden), inputs
        graph, outputs, read = self.recorded[key]
        for one, new in zip(read, inputs, strict=True):
            one.copy_(new)
        graph.replay()
        return outputs

    def _record(
        self, tokens: torch.Tensor, positions: torch.Tensor, columns: Columns, hidden: bool
    ) -> tuple[torch.cuda.CUDAGraph, tuple]:
        self.cache.point(columns)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # the first runs compile, choose kernels and allocate workspaces
            for _ in range(WARM_UP):
                self.step(tokens, positions, columns.mask, hidden)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            outputs = self.step(tokens, positions, columns.mask, hidden)
        return graph, outputs


def padded_columns(
    columns: Columns,
    count: int,
    rows: int,
    spare: int,
    in_use: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Columns:
    """The columns of a forward over `count` rows, padded to `rows`. It reads the first slots of the cache, of
    which `in_use` have been used. Padding rows write to slot `spare` and see only that one: a row that saw
    nothing would give NaN, and so would all rows that read its slot.
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


def bucket(count: int, minimum: int = 1) -> int:
    """The smallest power of two that is at least `count` and at least `minimum`."""
    return max(minimum, 1 << (count - 1).bit_length())
