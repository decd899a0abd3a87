"""A padded batch: texts of different lengths, padded on the left and realigned after every round.

Scores nodes of several texts, which stand side by side in one token tree, through transformers' own forward
with a batch dimension: one row per text, a padding mask, keys and values [B, H, T, D] per layer. When texts
have moved on by different numbers of tokens, their rows are unpadded, cut to what is kept, and padded again.
The same interface as `engine.Scorer`; the nodes asked for lie on one path in each text.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

from decoders.engine.engine import Work
from decoders.engine.kv_cache import context_of
from decoders.engine.tree import Tree

BY_COLUMN, PADDING_KEPT = "positions by column", "padding counted"


class Rows(Cache):
    """Keys and values, layer by layer, each [B, H, T, D]; `update` adds columns at the right."""

    def __init__(self, stored: list[list[torch.Tensor]], layers: int):
        super().__init__(layers=[])
        self.stored, self.layer_count = stored, layers

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds the keys and values [B, H, N, D] of one layer; returns all of them."""
        if layer_idx == len(self.stored):
            self.stored.append([key_states, value_states])
        else:
            before = self.stored[layer_idx]
            new = zip(before, (key_states, value_states), strict=True)
            self.stored[layer_idx] = [torch.cat(both, dim=2) for both in new]
        return tuple(self.stored[layer_idx])

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.stored[0][0].shape[2] if self.stored else 0

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    @property
    def is_sliding(self) -> list[bool]:
        return [False] * self.layer_count

    @property
    def is_compileable(self) -> bool:
        return False

    def __len__(self) -> int:
        return self.layer_count


@dataclass
class Row:
    """One text of the rectangle: the nodes whose keys it holds, in order, and the columns they stand in."""

    nodes: list[int]
    columns: list[int]
    padding: int = 0  # columns in the last forward that were not its own tokens
    moved: int = 0  # entries that were copied to other columns for the last forward
    counted: int = 0  # sum of its padding over all times it was padded again


class Rectangle:
    """`rows[root]`: the texts that it holds, by their first nodes, in the order of the rectangle's rows.

    `mistake`: a mistake that real implementations made, for lessons. Position ids are column numbers, or they
    count the padding that a row received each time it was padded again.
    """

    def __init__(self, model: torch.nn.Module, tree: Tree, mistake: str | None = None):
        self.model, self.tree, self.mistake = model, tree, mistake
        self.context = context_of(model.config.get_text_config())[0]
        self.layers = model.config.get_text_config().num_hidden_layers
        self.rows: dict[int, Row] = {}
        self.stored: list[list[torch.Tensor]] = []  # layer -> keys, values [B, H, T, D]
        self.apart: dict[int, tuple[list[int], list[list[torch.Tensor]]]] = {}  # texts that are not in it now
        # text -> the columns it stood in before it was taken apart
        self.moved_from: dict[int, list[int]] = {}
        self.kept: dict[int, torch.Tensor] = {}  # node -> its logits [V]
        self.work, self.peak, self.width = Work(), 0, 0  # width: columns before the last forward's own

    @property
    def used(self) -> int:
        """Cache entries in use."""
        return sum(len(row.nodes) for row in self.rows.values())

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] of the token after each node; what is new runs in one forward, one row per text."""
        self.work = Work(rows=len(nodes))
        paths: dict[int, list[int]] = {}  # root -> the path down to the deepest node that is asked for
        for node in nodes:
            if node not in self.kept:
                path = self.tree.path(node)
                paths[path[0]] = max(paths.get(path[0], []), path, key=len)
        if paths:
            self._forward(paths, set(nodes))
        return torch.stack([self.kept[node] for node in nodes])

    def _forward(self, paths: dict[int, list[int]], asked: set[int]) -> None:
        """Lays the texts out and runs what their paths add."""
        known = {root: self._known(root, path, asked) for root, path in paths.items()}
        self.width = width = self._lay_out(known)
        new = {root: path[known[root] :] for root, path in paths.items()}
        widest = max(map(len, new.values()))
        ids = torch.zeros((len(new), widest), dtype=torch.long)
        places, seen = (
            torch.zeros_like(ids),
            torch.zeros((len(new), 1, widest, width + widest), dtype=torch.bool),
        )
        for i, (root, added) in enumerate(new.items()):
            row, first = self.rows[root], widest - len(added)  # shorter additions are padded on the left, too
            row.padding += first
            ids[i, first:] = torch.tensor([self.tree.tokens[n] for n in added])
            start = {BY_COLUMN: width + first, PADDING_KEPT: known[root] + row.counted}
            at = start.get(self.mistake, known[root])
            places[i, first:] = torch.arange(at, at + len(added)).clamp(max=self.context - 1)
            seen[i, 0, :, row.columns] = True
            square = torch.ones((len(added), len(added)), dtype=torch.bool).tril()
            seen[i, 0, first:, width + first :] = square
            seen[i, 0, :first, width + first] = True  # what stands for padding must see something
            row.nodes += added
            row.columns += range(width + first, width + widest)
        cache, device, dtype = Rows(self.stored, self.layers), self.model.device, self.model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        with torch.inference_mode():
            logits = self.model(
                input_ids=ids.to(device),
                position_ids=places.to(device),
                attention_mask=mask.to(device),
                past_key_values=cache,
                use_cache=True,
            ).logits  # [B, N, V]
        self.stored = cache.stored
        logits = logits if logits.dtype == torch.float64 else logits.float()
        for i, added in enumerate(new.values()):
            self.kept.update(zip(added, logits[i, widest - len(added) :], strict=True))
        self.work.tokens = sum(map(len, new.values()))
        self.peak = max(self.peak, len(new) * (width + widest))

    def _known(self, root: int, path: list[int], asked: set[int]) -> int:
        """How many nodes of a path need not run again: they are cached, and no logits that were dropped are
        needed.
        """
        held = self.rows[root].nodes if root in self.rows else self.apart.get(root, ([], []))[0]
        count = 0
        for mine, wanted in zip(held, path, strict=False):
            if mine != wanted or (wanted in asked and wanted not in self.kept):
                break
            count += 1
        return count

    def _lay_out(self, known: dict[int, int]) -> int:
        """Makes the rectangle of these texts, each cut to as many nodes as `known` says and ending at the
        right edge; returns its width. Rows that are aligned already are only cut; otherwise all are unpadded
        and padded again.
        """
        width = max(known.values())
        for row in self.rows.values():
            row.moved = 0
        right = list(known) == list(self.rows) and all(
            row.columns[: known[root]] == list(range(width - known[root], width))
            for root, row in self.rows.items()
        )
        if right:
            self.stored = [[x[:, :, :width] for x in layer] for layer in self.stored]
        else:
            self._take_apart()
            self._join(known, width)
        for root, row in self.rows.items():
            row.nodes, row.columns = row.nodes[: known[root]], row.columns[: known[root]]
            row.padding = width - known[root]
        return width

    def _take_apart(self) -> None:
        """Unpads every row: its entries in order, without a gap."""
        for i, (root, row) in enumerate(self.rows.items()):
            layers = [[x[i][:, row.columns] for x in layer] for layer in self.stored]  # [H, n, D]
            self.apart[root] = row.nodes, layers
        self.moved_from = {root: row.columns for root, row in self.rows.items()}

    def _join(self, known: dict[int, int], width: int) -> None:
        """Pads the texts on the left to one width and puts them one below the other."""
        before, old, self.rows, self.stored = self.moved_from, self.rows, {}, []
        parts = {root: self.apart.pop(root, ([], [])) for root in known}
        for root, (nodes, _) in parts.items():
            count = known[root]
            columns = list(range(width - count, width))
            moved = sum(a != b for a, b in zip(before.get(root, []), columns, strict=False))
            counted = old[root].counted + old[root].padding if root in old else 0
            self.rows[root] = Row(nodes[:count], columns, width - count, moved, counted)
        if width == 0:
            return
        like = next(layers for _, layers in parts.values() if layers)
        for layer in range(self.layers):
            both = []
            for which in (0, 1):
                sides = [
                    self._padded(layers, layer, which, known[root], width, like[layer][which])
                    for root, (_, layers) in parts.items()
                ]
                both.append(torch.stack(sides))
            self.stored.append(both)

    @staticmethod
    def _padded(layers, layer: int, which: int, count: int, width: int, like: torch.Tensor) -> torch.Tensor:
        """The first `count` entries of one text [H, n, D], padded on the left to [H, width, D]."""
        whole = like.new_zeros((like.shape[0], width, like.shape[2]))
        if count:
            whole[:, width - count :] = layers[layer][which][:, :count]
        return whole

    def attention(self, nodes: list[int]) -> None:
        return None

    def forget(self, nodes: list[int]) -> None:
        """Drops the kept logits of nodes that are not needed again; their cache entries stay."""
        for node in nodes:
            self.kept.pop(node, None)

    def release(self, nodes: list[int]) -> None:
        """Drops dead nodes; their cache entries go when the rows are laid out the next time."""
        self.forget(nodes)

    def close(self) -> None:
        self.rows, self.stored, self.apart, self.kept = {}, [], {}, {}
