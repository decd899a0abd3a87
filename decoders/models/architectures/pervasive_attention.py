"""Pervasive attention (Elbayad, Besacier and Verbeek 2018): one grid of answer by source in place of encoder
and decoder. Its cells are [source_j ; answer_(i-1)]; two-dimensional convolutions run over it, and a maximum
over the source gives each row's features.

`start` and `step` write row by row and keep the last rows of each layer.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import glu, linear, pad, relu
from transformers import PreTrainedConfig

from decoders.models.architectures.source_stream import SourceStream

PAPERS = ("pervasive-attention",)


class PervasiveConfig(PreTrainedConfig):
    """width: of an embedding; a cell has twice as many channels. kernel: answer rows by source columns.
    causal_source: convolutions are causal along the source too, as wait-k needs.
    """

    model_type = "pervasive_attention"

    def __init__(
        self,
        vocab_size: int = 258,
        width: int = 24,
        layers: int = 6,
        kernel: tuple[int, int] = (3, 3),
        causal_source: bool = False,
        begin: int = 0,
        separator: tuple[int, ...] = (),
        eos_token_id: int = 0,
        max_position_embeddings: int = 128,
        **rest: Any,
    ):
        self.vocab_size, self.width, self.kernel, self.begin = vocab_size, width, list(kernel), begin
        self.causal_source, self.separator = causal_source, list(separator)
        self.max_position_embeddings, self.eos_token_id = max_position_embeddings, eos_token_id
        self.num_hidden_layers, self.hidden_size = layers, width
        super().__init__(**rest)


class Layer(nn.Module):
    """A residual layer: norm, ReLU, and a convolution that is causal along the answer."""

    def __init__(self, channels: int, kernel: tuple[int, int], causal_source: bool):
        super().__init__()
        rows, columns = kernel
        self.rows_before = rows - 1
        left = columns - 1 if causal_source else (columns - 1) // 2
        self.sides = (left, columns - 1 - left)
        self.norm = nn.LayerNorm(channels)
        self.conv = nn.Conv2d(channels, channels, kernel)

    def before(self, cells: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Cells [N, I, J, C] -> the convolution's input, with zeros in columns that `seen` [N, J] masks."""
        return relu(self.norm(cells)) * seen[:, None, :, None]

    def convolved(self, inner: torch.Tensor) -> torch.Tensor:
        """Rows [N, rows_before + I, J, C] -> [N, I, J, C]."""
        return self.conv(pad(inner.permute(0, 3, 1, 2), self.sides)).permute(0, 2, 3, 1)

    def forward(self, cells: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Cells [N, I, J, C] -> the same shape; seen [N, J]."""
        inner = self.before(cells, seen)
        return cells + self.convolved(pad(inner, (0, 0, 0, 0, self.rows_before, 0)))


@dataclass
class RowCache:
    """The last input rows [N, rows_before, J, C] of each layer's convolution, and the embedded source."""

    rows: list[torch.Tensor]
    source: torch.Tensor
    seen: torch.Tensor
    written: int = 0


class PervasiveAttention(SourceStream):
    """The grid's columns are a begin token and the source; row i predicts token i of the answer."""

    config_class = PervasiveConfig

    def __init__(self, config: PervasiveConfig):
        super().__init__(config)
        self.read_table, self.write_table = (nn.Embedding(config.vocab_size, config.width) for _ in range(2))
        kernel = tuple(config.kernel)
        self.layers = nn.ModuleList(
            Layer(2 * config.width, kernel, config.causal_source) for _ in range(config.num_hidden_layers)
        )
        self.norm, self.gate = nn.LayerNorm(2 * config.width), nn.Linear(2 * config.width, 2 * config.width)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings of the answer, tied to the head."""
        return self.write_table

    def get_output_embeddings(self) -> nn.Embedding:
        """The head, tied to the input embeddings."""
        return self.write_table

    def head(self, states: torch.Tensor) -> torch.Tensor:
        """States [..., width] -> logits [..., V]."""
        return linear(states, self.write_table.weight)

    def columns(self, sources: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embedded columns [N, 1 + S, width], the first of them the begin token, and their mask."""
        marked = pad(sources, (1, 0), value=self.config.begin)
        return self.read_table(marked), pad(seen, (1, 0), value=True)

    def rows(self, answers: torch.Tensor) -> torch.Tensor:
        """Embedded rows [N, 1 + A, width]: the token before each position."""
        return self.write_table(pad(answers, (1, 0), value=self.config.begin))

    def cells(self, columns: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The first layer's input grid [N, I, J, 2 width]."""
        shape = (-1, rows.shape[1], columns.shape[1], -1)
        return torch.cat([columns[:, None].expand(shape), rows[:, :, None].expand(shape)], -1)

    def features(
        self, cells: torch.Tensor, seen: torch.Tensor, wait: int | None, first: int = 0
    ) -> torch.Tensor:
        """Gated features [N, I, J, width], -inf in columns that row i may not see. first: the number of the
        first row.
        """
        shown = seen[:, None, :].expand(cells.shape[:3])
        if wait is not None:
            rows, columns = (torch.arange(n, device=cells.device) for n in cells.shape[1:3])
            shown = shown & (columns[None] < (rows + first)[:, None] + wait + 1)  # + 1 for the begin token
        return glu(self.gate(self.norm(cells)), -1).masked_fill(~shown[..., None], -torch.inf)

    def grid(
        self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor, wait: int | None = None
    ) -> torch.Tensor:
        """Features [N, A + 1, S + 1, width] of the whole grid. wait: row i sees only the first i + wait
        tokens of the source (wait-k; exact if the model has `causal_source`).
        """
        columns, there = self.columns(sources, seen)
        cells = self.cells(columns, self.rows(answers))
        for layer in self.layers:
            cells = layer(cells, there)
        return self.features(cells, there, wait)

    def answer_states(
        self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor, wait: int | None = None
    ) -> torch.Tensor:
        """As `SourceStream.answer_states`; the maximum of each channel over the source."""
        return self.grid(sources, seen, answers, wait).amax(2)

    def alignment(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """The share [N, A + 1, S + 1] of channels whose maximum comes from each column; each row sums to
        1.
        """
        grid = self.grid(sources, seen, answers)
        best = grid.argmax(2)  # [N, I, width]
        counts = torch.zeros(grid.shape[:3], device=grid.device)
        return counts.scatter_add_(2, best, torch.ones_like(best, dtype=counts.dtype)) / grid.shape[-1]

    def start(self, sources: torch.Tensor, seen: torch.Tensor) -> RowCache:
        """An empty cache over sources [N, S]."""
        columns, there = self.columns(sources, seen)
        empty = [
            columns.new_zeros(len(sources), layer.rows_before, columns.shape[1], 2 * self.config.width)
            for layer in self.layers
        ]
        return RowCache(empty, columns, there)

    def step(self, cache: RowCache, tokens: torch.Tensor | None, wait: int | None = None) -> torch.Tensor:
        """Logits [N, V] after one more token [N] of each answer (None: before the first), from one row of
        cells. The cache is changed in place.
        """
        before = cache.seen.new_full((len(cache.seen),), self.config.begin, dtype=torch.long)
        row = self.write_table(before if tokens is None else tokens)[:, None]
        cells = self.cells(cache.source, row)
        for at, layer in enumerate(self.layers):
            inner = torch.cat([cache.rows[at], layer.before(cells, cache.seen)], 1)
            cells = cells + layer.convolved(inner)
            cache.rows[at] = inner[:, 1:]
        states = self.features(cells, cache.seen, wait, cache.written).amax(2)[:, 0]
        cache.written += 1
        return self.head(states)


MODEL = PervasiveAttention
