"""Prepacking: short prompts share a row of a batch, so that less of it is padding (Zhao et al. 2024).

Unlike the authors' code, the last token of a prompt stays in its row, and the first logits are read there.
For models whose layers all see everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from transformers import DynamicCache

from decoders.scheduling.requests import Iteration, Request, after

Rows = list[list[int]]  # of each row, the prompts that stand in it


def packed(lengths: Sequence[int]) -> Rows:
    """First-fit decreasing into bins as long as the longest prompt: the longest goes first, each into the
    first bin that has room.
    """
    bins: Rows = []
    for one in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        room = (row for row in bins if sum(lengths[i] for i in row) + lengths[one] <= max(lengths))
        row = next(room, None)
        if row is None:
            bins.append(row := [])
        row.append(one)
    return bins


def padded(lengths: Sequence[int]) -> Rows:
    """A row for each prompt."""
    return [[i] for i in range(len(lengths))]


def cells(rows: Rows, lengths: Sequence[int]) -> int:
    """Tokens computed, padding included: all rows are as long as the longest."""
    return len(rows) * max(sum(lengths[i] for i in row) for row in rows)


@dataclass
class Grid:
    """A batch of rows. [R, W] each: tokens, positions, and whose token it is, -1 for padding."""

    tokens: torch.Tensor
    positions: torch.Tensor
    owner: torch.Tensor

    @property
    def sees(self) -> torch.Tensor:
        """[R, W, W]: its own prompt up to itself; padding sees itself, or its softmax would have no value."""
        same = self.owner[:, :, None] == self.owner[:, None, :]
        causal = torch.ones(same.shape[1:], dtype=torch.bool, device=same.device).tril()
        own = torch.eye(same.shape[1], dtype=torch.bool, device=same.device)
        return (same & causal & (self.owner >= 0)[:, :, None]) | own


def grid(prompts: list[list[int]], rows: Rows, device: torch.device | str = "cpu") -> Grid:
    """The rows side by side, positions from 0 on in each prompt."""
    width = max(sum(len(prompts[i]) for i in row) for row in rows)
    filled = [
        [
            [token for i in row for token in prompts[i]],
            [place for i in row for place in range(len(prompts[i]))],
            [i for i in row for _ in prompts[i]],
        ]
        for row in rows
    ]
    parts = zip(*filled, strict=True)
    ends = zip(parts, (0, 0, -1), strict=True)
    made = [[part + [end] * (width - len(part)) for part in column] for column, end in ends]
    return Grid(*(torch.tensor(one, device=device) for one in made))


def additive(sees: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask [R, 1, Q, K] to add to scores, of what is seen [R, Q, K]."""
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill(
        ~sees, torch.finfo(dtype).min
    )[:, None]


States = list[tuple[torch.Tensor, torch.Tensor]]  # of each layer, keys and values [H, l, D]


@torch.inference_mode()
def prefill(model, prompts: list[list[int]], rows: Rows) -> tuple[torch.Tensor, list[States]]:
    """One forward over all rows: the logits [N, V] after each prompt, and its own keys and values."""
    one = grid(prompts, rows, model.device)
    cache = DynamicCache()
    mask = additive(one.sees, model.dtype)
    logits = model(
        input_ids=one.tokens,
        attention_mask=mask,
        position_ids=one.positions,
        past_key_values=cache,
        use_cache=True,
    ).logits
    last, states = [], []
    for i in range(len(prompts)):
        row, places = (one.owner == i).nonzero(as_tuple=True)
        at, where = int(row[0]), slice(int(places[0]), int(places[-1]) + 1)
        last.append(logits[at, where.stop - 1])
        states.append([(x.keys[at, :, where], x.values[at, :, where]) for x in cache.layers])
    return torch.stack(last), states


class Unpacked:
    """A normal batch after the prefill: a row for each prompt, its states padded on the right."""

    def __init__(self, model, states: list[States]):
        self.model, self.cache = model, DynamicCache()
        self.lengths = torch.tensor([one[0][0].shape[1] for one in states], device=model.device)
        self.begin, self.steps = int(self.lengths.max()), 0
        for layer, kept in enumerate(zip(*states, strict=True)):
            keys, values = (torch.stack([self._filled(x) for x in part]) for part in zip(*kept, strict=True))
            self.cache.update(keys, values, layer)

    def _filled(self, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(states, (0, 0, 0, self.begin - states.shape[1]))

    @torch.inference_mode()
    def read(self, tokens: list[int]) -> torch.Tensor:
        """The logits [N, V] after one more token per row."""
        self.steps += 1
        columns = torch.arange(self.begin + self.steps, device=self.model.device)
        sees = (columns < self.lengths[:, None]) | (columns >= self.begin)
        return self.model(
            input_ids=torch.tensor(tokens, device=self.model.device)[:, None],
            attention_mask=additive(sees[:, None], self.model.dtype),
            position_ids=(self.lengths + self.steps - 1)[:, None],
            past_key_values=self.cache,
            use_cache=True,
        ).logits[:, -1]


def serve_batches(model, requests: list[Request], rows: int, pack: bool) -> list[Iteration]:
    """Request-level batching on a model of transformers: up to `rows` requests read their prompts in one
    forward, padded or packed, then decode until all are done; the rows of those done before are padding.
    """
    place = {request: i for i, request in enumerate(requests)}
    coming, at, ran = sorted(requests, key=lambda r: r.arrives), 0, []
    while coming:
        at = max(at, coming[0].arrives)
        batch = [one for one in coming if one.arrives <= at][:rows]
        coming = [one for one in coming if one not in batch]
        lengths = [len(one.prompt) for one in batch]
        laid, follow = (packed if pack else padded)(lengths), None
        plan = list(zip(batch, lengths, strict=True))
        while plan:
            start, count = perf_counter(), len(batch) if follow else cells(laid, lengths)
            if follow is None:
                logits, states = prefill(model, [one.prompt for one in batch], laid)
                follow = Unpacked(model, states)
            else:
                logits = follow.read([one.written[-1] for one in batch])
            best = dict(zip(batch, logits.argmax(-1).tolist(), strict=True))
            seconds = perf_counter() - start
            wrote = after(plan, [best[one] for one, _ in plan])
            counts = {place[one]: tokens for one, tokens in plan}
            ran.append(Iteration(at, counts, [place[one] for one in wrote], count, seconds))
            plan, at = [(one, 1) for one in batch if not one.done], at + 1
    return ran
