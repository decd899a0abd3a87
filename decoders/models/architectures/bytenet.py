"""ByteNet (Kalchbrenner et al. 2016): dilated convolutions read a source and write its answer in linear time.

`start` and `step` write byte by byte from ring buffers; `answer_states` computes the same for a whole answer
at once. Token ids are bytes.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad, relu
from transformers import PreTrainedConfig

from decoders.models.architectures.source_stream import SourceStream

PAPERS = ("neural-machine-translation-in-linear-time",)


class ByteNetConfig(PreTrainedConfig):
    """width: d inside the blocks, 2 d between them. dilations: of one set of blocks; encoder and decoder each
    stack `sets` of these. unfold: a and b of the bound a |s| + b on the answer's length (section 3.2).
    """

    model_type = "bytenet"

    def __init__(
        self,
        vocab_size: int = 258,
        width: int = 64,
        dilations: tuple[int, ...] = (1, 2, 4, 8, 16),
        sets: int = 2,
        kernel: int = 3,
        unfold: tuple[float, int] = (1.2, 0),
        separator: tuple[int, ...] = (),
        eos_token_id: int = 0,
        max_position_embeddings: int = 512,
        **rest: Any,
    ):
        self.vocab_size, self.width, self.kernel, self.sets = vocab_size, width, kernel, sets
        self.dilations, self.unfold, self.separator = list(dilations), list(unfold), list(separator)
        self.max_position_embeddings, self.eos_token_id = max_position_embeddings, eos_token_id
        self.num_hidden_layers, self.hidden_size = sets * len(dilations), 2 * width
        super().__init__(**rest)

    @property
    def receptive_field(self) -> int:
        """How many bytes of an answer one prediction can depend on: 1 + sum of (k - 1) dilation."""
        return 1 + self.sets * sum((self.kernel - 1) * dilation for dilation in self.dilations)

    def unfolded(self, sources: torch.Tensor) -> torch.Tensor:
        """|t^| for sources of these lengths [N]; 0 for an empty source."""
        a, b = self.unfold
        return torch.where(sources > 0, (a * sources).ceil().long() + b, 0)


class Block(nn.Module):
    """A residual block (figure 3): norm, ReLU, 1 x 1 to d; norm, ReLU, dilated; norm, ReLU, 1 x 1 to 2 d."""

    def __init__(self, width: int, kernel: int, dilation: int, masked: bool):
        super().__init__()
        self.reach, self.dilation = (kernel - 1) * dilation, dilation
        self.sides = (self.reach, 0) if masked else (self.reach // 2, self.reach - self.reach // 2)
        self.norm_in, self.norm_mid, self.norm_out = (nn.LayerNorm(w) for w in (2 * width, width, width))
        self.narrow, self.widen = nn.Linear(2 * width, width), nn.Linear(width, 2 * width)
        self.dilated = nn.Conv1d(width, width, kernel, dilation=dilation)

    def before(self, states: torch.Tensor) -> torch.Tensor:
        """States [..., 2 d] -> the input [..., d] of the dilated convolution."""
        return relu(self.norm_mid(self.narrow(relu(self.norm_in(states)))))

    def after(self, states: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """States [..., 2 d] and the convolution's output [..., d] -> states [..., 2 d]."""
        return states + self.widen(relu(self.norm_out(read)))

    def forward(self, states: torch.Tensor, counts: torch.Tensor | None = None) -> torch.Tensor:
        """States [N, T, 2 d] -> the same shape; counts [N, T, 1]: 1 where a place exists, others read as
        zeros.
        """
        inner = self.before(states)
        inner = inner if counts is None else inner * counts
        read = self.dilated(pad(inner.transpose(1, 2), self.sides)).transpose(1, 2)
        return self.after(states, read)


@dataclass
class Rings:
    """The state while writing: for each block a ring of its last (k - 1) dilation activations [N, reach, d],
    and the unfolded source [N, |t^|, 2 d].
    """

    buffers: list[torch.Tensor]
    memory: torch.Tensor
    written: int = 0


class ByteNet(SourceStream):
    """The encoder's blocks are bidirectional, the decoder's causal; the decoder is stacked on the encoder."""

    config_class = ByteNetConfig

    def __init__(self, config: ByteNetConfig):
        super().__init__(config)
        wide = 2 * config.width
        self.read_table, self.write_table = (nn.Embedding(config.vocab_size, wide) for _ in range(2))
        dilations = config.dilations * config.sets
        self.encoder = nn.ModuleList(Block(config.width, config.kernel, d, False) for d in dilations)
        self.decoder = nn.ModuleList(Block(config.width, config.kernel, d, True) for d in dilations)
        self.join, self.last = nn.Linear(2 * wide, wide), nn.Linear(wide, wide)
        self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings of an answer's bytes."""
        return self.write_table

    def read(self, sources: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Sources [N, S] and a mask of their places -> memory [N, longest |t^|, 2 d], zeros after each
        |t^|.
        """
        bounds = self.config.unfolded(seen.sum(-1))
        longest = int(bounds.max()) if len(bounds) else 0
        states = self.read_table(sources) * seen[..., None]
        states = pad(states, (0, 0, 0, max(0, longest - states.shape[1])))[:, :longest]
        counts = (torch.arange(longest, device=bounds.device) < bounds[:, None])[..., None]
        if longest:
            for block in self.encoder:
                states = block(states, counts)
        return states * counts

    def answer_states(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """As `SourceStream.answer_states`; d is 2 `width`."""
        steps = answers.shape[1] + 1
        before = pad(self.write_table(answers), (0, 0, 1, 0))  # the byte before; nothing before the first
        memory = self.read(sources, seen)[:, :steps]
        memory = pad(memory, (0, 0, 0, steps - memory.shape[1]))
        states = self.join(torch.cat([before, memory], -1))
        for block in self.decoder:
            states = block(states)
        return self.head_input(states)

    def head_input(self, states: torch.Tensor) -> torch.Tensor:
        """States of the last block -> the head's input."""
        return relu(self.last(relu(self.norm(states))))

    def start(self, sources: torch.Tensor, seen: torch.Tensor) -> Rings:
        """Empty rings over sources [N, S]."""
        width, memory = self.config.width, self.read(sources, seen)
        return Rings([memory.new_zeros(len(sources), block.reach, width) for block in self.decoder], memory)

    def step(self, rings: Rings, tokens: torch.Tensor | None) -> torch.Tensor:
        """Logits [N, V] after one more byte [N] of each answer (None: before the first), in constant time.
        The rings are changed in place.
        """
        at, rows = rings.written, len(rings.memory)
        before = rings.memory.new_zeros(rows, 2 * self.config.width)
        before = before if tokens is None else self.write_table(tokens)
        memory = rings.memory[:, at] if at < rings.memory.shape[1] else torch.zeros_like(before)
        states = self.join(torch.cat([before, memory], -1))
        for block, ring in zip(self.decoder, rings.buffers, strict=True):
            inner = block.before(states)
            past = [(at - back) % block.reach for back in range(block.reach, 0, -block.dilation)]
            window = torch.stack([*(ring[:, place] for place in past), inner], -1)  # [N, d, k]
            ring[:, at % block.reach] = inner
            read = torch.einsum("nik,oik->no", window, block.dilated.weight) + block.dilated.bias
            states = block.after(states, read)
        rings.written += 1
        return self.head(self.head_input(states))


MODEL = ByteNet
