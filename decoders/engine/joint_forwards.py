"""Batches forwards across lanes: requests that wait at the same time run as one forward.

A lane that requests a forward pauses while other lanes add theirs; the first to continue runs all of them. If
other lanes are still drafting, a small request to a target waits a little longer, so that their drafts are
verified in the same forward. The rows of all requests are stacked. They attend together, over concatenated
slots and with a mask that hides each lane's slots from the others, or each lane's rows attend apart. The
numbers are those of separate forwards up to rounding.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from weakref import WeakSet

import torch

from decoders.engine.forward_outputs import Batch
from decoders.engine.forward_request import ForwardRequest
from decoders.engine.kv_cache import Columns

log = logging.getLogger(__name__)
Pause = Callable[[], bool]  # lets others add requests; returns False at once if nobody can
Slots = slice | torch.Tensor
ROWS = 256  # at most in a joint forward
FEW = 24  # rows; a forward with fewer costs little more with some rows added, since it waits for the weights
CATCH_UP = 8  # turns that few rows wait at most while lanes wait for a smaller model: the forwards of a draft
CELLS = 1 << 19  # at most in its mask: beyond, masked columns cost more than a second forward
APART = 600  # cells of the mask per lane; beyond, lanes that attend apart are faster than masked columns
SPREAD = 1.5  # a slice may be this many times as long as the slots needed; beyond, gathering them is cheaper


@dataclass(eq=False)
class Waiting:
    """A request and its result."""

    request: ForwardRequest
    batch: Batch | None = None
    error: Exception | None = None
    seconds: float = 0.0  # its share of the forward


class JointForwards:
    """The waiting requests of one engine. `run(request)` computes one forward."""

    def __init__(
        self,
        run: Callable[[ForwardRequest], Batch],
        device: torch.device,
        dtype: torch.dtype,
        parts: Callable[[], bool] = lambda: False,
        size: int = 0,
    ):
        """run: computes one forward. parts: whether it can let requests attend apart. size: the number of the
        model's parameters.
        """
        self.run, self.device, self.dtype, self.parts = run, device, dtype, parts
        self.size = size
        self.waiting: list[Waiting] = []
        self.paused = 0  # lanes that have requested a forward and not yet continued with its result
        self.requests = 0  # all so far
        EVERY.add(self)

    def forward(self, request: ForwardRequest, pause: Pause) -> Batch:
        """The result of `request`, run together with what others request during `pause`. Raises what it would
        raise alone.
        """
        mine = Waiting(request)
        self.waiting.append(mine)
        self.paused += 1
        self.requests += 1
        try:
            if not pause():
                return self.run(request)
            before = turns = 0
            while mine in self.waiting and turns < CATCH_UP:
                if (drafts := self._drafts()) in (0, before):  # nobody drafts, or goes on drafting
                    break
                before, turns = drafts, turns + 1
                pause()
            began, mine_to_run = time.perf_counter(), mine in self.waiting
            if mine_to_run:
                self._run_all()
        finally:  # a lane may be closed while its request waits
            self.paused -= 1
            if mine in self.waiting:
                self.waiting.remove(mine)
        if mine.error is not None:
            raise mine.error
        spent = time.perf_counter() - began if mine_to_run else 0.0
        mine.batch.for_others = spent - mine.seconds
        return mine.batch

    def _drafts(self) -> int:
        """The forwards requested so far of smaller models for which lanes wait; 0 if there are none, or if
        enough rows wait here.
        """
        if row_count([one.request for one in self.waiting]) >= FEW:
            return 0
        return sum(other.requests for other in EVERY if other.paused and other.size < self.size)

    def _run_all(self) -> None:
        waiting, self.waiting = self.waiting, []
        for group in groups(waiting, self.parts()):
            try:
                self._run(group)
            except Exception as error:
                if len(group) == 1:
                    group[0].error = error
                    continue
                log.warning("A joint forward failed; each runs alone.", exc_info=True)
                for one in group:
                    self._run_alone(one)

    def _run(self, group: list[Waiting]) -> None:
        began = time.perf_counter()
        if apart := self.parts() and cells([one.request for one in group]) > APART * len(group):
            group.sort(key=lambda one: len(one.request.tokens))
        requests = [one.request for one in group]
        batches = split_batch(self.run(join(requests, apart, self.device, self.dtype)), group)
        if self.device.type == "cuda":  # else the clock would be read before the GPU has finished
            torch.cuda.current_stream(self.device).synchronize()
        took, rows = time.perf_counter() - began, row_count(requests)
        for one, batch in zip(group, batches, strict=True):
            one.batch, one.seconds = batch, took * len(one.request.tokens) / rows

    def _run_alone(self, one: Waiting) -> None:
        try:
            self._run([one])
        except Exception as error:
            one.error = error


EVERY: WeakSet[JointForwards] = WeakSet()  # those of all engines


def groups(waiting: list[Waiting], parts: bool) -> Iterator[list[Waiting]]:
    """Consecutive requests that can run as one, in order of arrival. parts: whether they can attend apart."""
    group: list[Waiting] = []
    for one in waiting:
        if group and not fit([other.request for other in (*group, one)], parts):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def fit(requests: list[ForwardRequest], parts: bool) -> bool:
    """Whether these can run as one forward, and faster than separately."""
    kinds = {(one.hidden, one.streams) for one in requests}
    return len(kinds) == 1 and row_count(requests) <= ROWS and (parts or cells(requests) <= CELLS)


def row_count(requests: list[ForwardRequest]) -> int:
    """The rows of a joint forward."""
    return sum(len(one.tokens) for one in requests)


def cells(requests: list[ForwardRequest]) -> int:
    """The cells of its mask if all rows attend together."""
    return row_count(requests) * sum(one.columns.count for one in requests)


def join(
    requests: list[ForwardRequest], apart: bool, device: torch.device, dtype: torch.dtype
) -> ForwardRequest:
    """One request for the rows of all requests, which attend apart or together."""
    if len(requests) == 1:
        return requests[0]
    firsts, columns = offsets(requests), [one.columns for one in requests]
    return ForwardRequest(
        tokens=[token for one in requests for token in one.tokens],
        positions=[position for one in requests for position in one.positions],
        columns=(in_parts if apart else side_by_side)(columns, firsts, device, dtype),
        rows=[first + row for one, first in zip(requests, firsts, strict=False) for row in one.rows],
        hidden=requests[0].hidden,
        streams=requests[0].streams,
    )


def offsets(requests: list[ForwardRequest]) -> list[int]:
    """The row at which each request begins, followed by the total number of rows."""
    firsts = [0]
    for one in requests:
        firsts.append(firsts[-1] + len(one.tokens))
    return firsts


def in_parts(parts: list[Columns], firsts: list[int], device: torch.device, dtype: torch.dtype) -> Columns:
    """The columns of a joint forward whose requests attend apart, sorted by rows; the rows of part i begin at
    firsts[i].
    """
    from decoders.engine.padded_attention import padded, size_class  # many lanes at once are rare

    blocks = []
    counts = [end - first for first, end in zip(firsts, firsts[1:], strict=False)]
    for _, some in groupby(range(len(parts)), lambda at: size_class(counts[at])):
        these = list(some)
        reads = [as_tensor(parts[at].read, device) for at in these]
        masks = [parts[at].mask for at in these]
        blocks.append(padded(firsts[these[0]], [counts[at] for at in these], reads, masks, dtype))
    write = joined_writes([part.write for part in parts], device)
    return Columns(write, slice(0, 0), 0, None, tuple(blocks))


def side_by_side(
    parts: list[Columns], firsts: list[int], device: torch.device, dtype: torch.dtype
) -> Columns:
    """The columns of a joint forward; the rows of part i begin at firsts[i]."""
    reads = [part.read for part in parts]
    low, high = min(map(lowest, reads)), max(map(highest, reads))
    if high - low < SPREAD * sum(part.count for part in parts):
        read, total = slice(low, high + 1), high + 1 - low
        places = [slice(r.start - low, r.stop - low) if isinstance(r, slice) else r - low for r in reads]
    else:
        read = torch.cat([as_tensor(r, device) for r in reads])
        total, places = len(read), []
        for part in parts:
            begin = places[-1].stop if places else 0
            places.append(slice(begin, begin + part.count))

    def mask(kind: str | None) -> torch.Tensor:
        whole = torch.full((firsts[-1], total), torch.finfo(dtype).min, dtype=dtype, device=device)
        for part, place, first, end in zip(parts, places, firsts, firsts[1:], strict=False):
            block = mask_of(part, kind)
            whole[first:end, place] = 0.0 if block is None else block[0, 0]
        return whole[None, None]

    return Columns(joined_writes([part.write for part in parts], device), read, total, by_kind(parts, mask))


def by_kind(
    parts: list[Columns], mask: Callable[[str | None], torch.Tensor]
) -> torch.Tensor | dict[str, torch.Tensor]:
    """`mask(kind)` for each kind of layer if any part distinguishes them, else `mask(None)`."""
    kinds = next((part.mask.keys() for part in parts if isinstance(part.mask, dict)), None)
    return mask(None) if kinds is None else {kind: mask(kind) for kind in kinds}


def mask_of(part: Columns, kind: str | None) -> torch.Tensor | None:
    """The mask for a kind of layer; None if nothing is masked."""
    return part.mask[kind] if isinstance(part.mask, dict) else part.mask


def joined_writes(writes: list[Slots], device: torch.device) -> Slots:
    """The slots of all tokens; a slice if they are consecutive."""
    if all(isinstance(one, slice) for one in writes):
        ends = zip(writes, writes[1:], strict=False)
        if all(one.stop == other.start for one, other in ends):
            return slice(writes[0].start, writes[-1].stop)
    return torch.cat([as_tensor(one, device) for one in writes])


def as_tensor(slots: Slots, device: torch.device) -> torch.Tensor:
    """Slots as an index tensor."""
    return torch.arange(slots.start, slots.stop, device=device) if isinstance(slots, slice) else slots


def lowest(slots: Slots) -> int:
    """The first slot."""
    return slots.start if isinstance(slots, slice) else int(slots.min())


def highest(slots: Slots) -> int:
    """The last slot."""
    return slots.stop - 1 if isinstance(slots, slice) else int(slots.max())


def split_batch(batch: Batch, group: list[Waiting]) -> list[Batch]:
    """The results of a joint forward, divided among its requests."""
    if len(group) == 1:
        return [batch]
    requests, batches, row = [one.request for one in group], [], 0
    for one, first in zip(requests, offsets(requests), strict=False):
        mine, own = slice(row, row + len(one.rows)), slice(first, first + len(one.tokens))
        batches.append(
            Batch(
                batch.logits[mine],
                None if batch.hidden is None else batch.hidden[mine],
                None if batch.queries is None else batch.queries[:, :, own],
                None if batch.stream is None else batch.stream[own],
                None if batch.streams is None else batch.streams[:, own],
                lanes=len(group),
            )
        )
        row += len(one.rows)
    return batches
