"""A byte-level recursive convolutional auto-encoder (Zhang and LeCun 2018): one group of convolutions,
applied recursively, halves a text until it is one vector; another expands that vector back into all bytes at
once.

Decoding is not autoregressive: one pass gives the distribution of every byte. The model reproduces its source
and cannot continue a text. Token ids are bytes.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn.functional import max_pool1d, pad, relu
from transformers import PreTrainedConfig

from decoders.models.architectures.source_stream import SourceStream

PAPERS = ("byte-level-recursive-convolutional-auto-encoder-for",)


class RecursiveConfig(PreTrainedConfig):
    """length: bytes of a text, a power of two; shorter texts are padded with zeros. shortest: length at which
    the recursion ends. prefix, group: convolutions outside and inside the recursion. vector: size of a text's
    vector.
    """

    model_type = "recursive_bytes"

    def __init__(
        self,
        vocab_size: int = 258,
        length: int = 64,
        shortest: int = 4,
        channels: int = 128,
        prefix: int = 2,
        group: int = 2,
        vector: int = 512,
        separator: tuple[int, ...] = (),
        eos_token_id: int = 0,
        max_position_embeddings: int = 144,
        **rest: Any,
    ):
        self.vocab_size, self.length, self.shortest, self.channels = vocab_size, length, shortest, channels
        self.prefix, self.group, self.vector, self.separator = prefix, group, vector, list(separator)
        self.max_position_embeddings, self.eos_token_id = max_position_embeddings, eos_token_id
        super().__init__(**rest)
        self.num_hidden_layers, self.hidden_size = self.recursions, channels

    @property
    def recursions(self) -> int:
        """How often each group is applied: log2(length / shortest)."""
        return int(math.log2(self.length // self.shortest))


class Convolutions(nn.Module):
    """Residual convolutions of width 3, each after a norm and ReLU. The paper has a residual around every
    second one and no norms; with these changes a small network learns in minutes.
    """

    def __init__(self, channels: int, count: int):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(count))
        self.convs = nn.ModuleList(nn.Conv1d(channels, channels, 3, padding=1) for _ in range(count))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """[N, C, T] -> [N, C, T]."""
        for norm, conv in zip(self.norms, self.convs, strict=True):
            states = states + conv(relu(norm(states.transpose(1, 2))).transpose(1, 2))
        return states


class RecursiveBytes(SourceStream):
    """The encoder's group ends with pooling by two, the decoder's with sub-pixel upsampling by two."""

    config_class = RecursiveConfig

    def __init__(self, config: RecursiveConfig):
        super().__init__(config)
        c, flat = config.channels, config.channels * config.shortest
        self.table = nn.Embedding(config.vocab_size, c)
        self.read_prefix, self.read_group = Convolutions(c, config.prefix), Convolutions(c, config.group)
        self.to_vector, self.from_vector = nn.Linear(flat, config.vector), nn.Linear(config.vector, flat)
        self.widen, self.write_group = nn.Conv1d(c, 2 * c, 3, padding=1), Convolutions(c, config.group)
        self.write_postfix = Convolutions(c, config.prefix)
        self.head = nn.Linear(c, config.vocab_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises by fan-in, as torch does. With transformers' 0.02, less of a text reaches the vector:
        after 250 batches tiny-recursive-bytes reproduced 46 % of the bytes instead of 71 %.
        """
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
        elif isinstance(module, nn.Linear | nn.Conv1d):
            reach = module.weight[0].numel() ** -0.5
            nn.init.uniform_(module.weight, -reach, reach)
            nn.init.uniform_(module.bias, -reach, reach)

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings of bytes."""
        return self.table

    def encode(self, texts: torch.Tensor) -> list[torch.Tensor]:
        """Texts [N, length] -> states after r = 0, 1 ... recursions, [N, C, length / 2^r]."""
        levels = [self.read_prefix(self.table(texts).transpose(1, 2))]
        for _ in range(self.config.recursions):
            levels.append(max_pool1d(self.read_group(levels[-1]), 2))
        return levels

    def vectors(self, texts: torch.Tensor) -> torch.Tensor:
        """Texts [N, length] -> vectors [N, vector]."""
        return self.to_vector(self.encode(texts)[-1].flatten(1))

    def decode(self, vectors: torch.Tensor) -> list[torch.Tensor]:
        """Vectors [N, vector] -> states after r = 0, 1 ... recursions, [N, C, shortest 2^r]."""
        levels = [self.from_vector(vectors).unflatten(1, (self.config.channels, self.config.shortest))]
        for _ in range(self.config.recursions):
            twice = self.widen(self.write_group(levels[-1]))  # [N, 2 C, T]: two positions of C channels each
            levels.append(twice.unflatten(1, (2, -1)).permute(0, 2, 3, 1).flatten(2))
        return levels

    def written(self, texts: torch.Tensor) -> torch.Tensor:
        """Texts [N, length] -> states [N, length, C] of all bytes, in one pass."""
        return self.write_postfix(self.decode(self.vectors(texts))[-1]).transpose(1, 2)

    def fitted(self, sources: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Sources [N, S] without their separator, cut or padded with zeros to [N, length]."""
        length, end = self.config.length, len(self.config.separator)
        bare = sources * (
            torch.arange(sources.shape[1], device=seen.device) < seen.sum(-1, keepdim=True) - end
        )
        return pad(bare, (0, max(0, length - bare.shape[1])))[:, :length]

    def answer_states(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """As `SourceStream.answer_states`, but only the length of `answers` matters. Beyond `length` bytes
        the last state is repeated.
        """
        states = self.written(self.fitted(sources, seen))
        places = torch.arange(answers.shape[1] + 1, device=states.device).clamp(max=self.config.length - 1)
        rows = states if len(states) == len(answers) else states.expand(len(answers), -1, -1)
        return rows[:, places]


MODEL = RecursiveBytes
