"""An encoder with two decoders: a reader that predicts a whole answer at once, and a writer that predicts it
token by token and attends to the reader's states (CrossNovo, 2025).

The reader's frames are decoded as in CTC; the writer uses its last hidden states, not its tokens.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Sizes:
    """Sizes: `vocabulary` tokens, then a blank; `source` and `answer` are lengths in tokens."""

    vocabulary: int
    source: int
    answer: int
    width: int = 64
    heads: int = 4
    layers: int = 1  # of encoder and writer
    reader_layers: int = 2

    @property
    def blank(self) -> int:
        """CTC's blank token; the writer also uses it as its start token."""
        return self.vocabulary

    @property
    def frames(self) -> int:
        """Positions of the reader: twice the longest answer, so that CTC has room for blanks."""
        return 2 * self.answer


class ReaderWriter(nn.Module):
    """Encoder, reader and writer. `places` [source]: the learned position of each token of a source."""

    def __init__(self, sizes: Sizes, places: list[int]):
        super().__init__()
        self.sizes, width = sizes, sizes.width
        self.register_buffer("places", torch.tensor(places))
        self.embed = nn.Embedding(sizes.vocabulary + 1, width)
        self.position = nn.Embedding(max(*places, sizes.answer) + 1, width)
        self.side = nn.Parameter(torch.randn(sizes.source, width) * 0.5)
        self.queries = nn.Parameter(torch.randn(sizes.frames, width) * 0.5)

        def layer(kind: type[nn.Module]) -> nn.Module:
            return kind(width, sizes.heads, 4 * width, 0.0, batch_first=True, norm_first=True)

        encoder = layer(nn.TransformerEncoderLayer)
        self.encoder = nn.TransformerEncoder(encoder, sizes.layers, nn.LayerNorm(width), False)
        self.reader, self.writer = (
            nn.TransformerDecoder(layer(nn.TransformerDecoderLayer), depth, nn.LayerNorm(width))
            for depth in (sizes.reader_layers, sizes.layers)
        )
        self.frame_head = nn.Linear(width, sizes.vocabulary + 1)
        self.token_head = nn.Linear(width, sizes.vocabulary)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """States [B, S, d] of sources [B, S]."""
        return self.encoder(self.embed(source) + self.position(self.places) + self.side)

    def read(self, encoded: torch.Tensor) -> torch.Tensor:
        """The reader's last hidden states [B, frames, d]: every frame sees every other one and the source."""
        return self.reader(self.queries.expand(len(encoded), -1, -1), encoded)

    def write(self, memory: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """Logits [B, T + 1, V] after each token of answers [B, T], and in front of the first one."""
        begin = answer.new_full((len(answer), 1), self.sizes.blank)
        states = self.embed(torch.cat([begin, answer], 1))
        count = states.shape[1]
        states = states + self.position.weight[:count]
        mask = nn.Transformer.generate_square_subsequent_mask(count, states.device)
        return self.token_head(self.writer(states, memory, tgt_mask=mask, tgt_is_causal=True))

    def ctc_loss(self, read: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """CTC loss of the reader's states against answers [B, T] of one length."""
        logprobs = self.frame_head(read).log_softmax(-1).transpose(0, 1)  # [frames, B, V + 1]
        lengths = [torch.full((len(answer),), size) for size in (self.sizes.frames, answer.shape[1])]
        return F.ctc_loss(logprobs, answer, *lengths, blank=self.sizes.blank)

    def token_loss(self, memory: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """Mean loss of the writer's next tokens, in nats."""
        return F.cross_entropy(self.write(memory, answer[:, :-1]).flatten(0, 1), answer.flatten())

    def of_the_writer(self) -> list[nn.Parameter]:
        """The parameters that the second stage trains."""
        return [*self.writer.parameters(), *self.token_head.parameters()]

    @torch.no_grad()
    def cross_attention(self, memory: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """Cross-attention [T, memory] of the last layer when each token of an answer [1, T] is written,
        averaged over heads.
        """
        attention, seen = self.writer.layers[-1].multihead_attn, []
        hook = attention.register_forward_pre_hook(lambda _, given: seen.append(given))
        try:
            self.write(memory, answer[:, :-1])
        finally:
            hook.remove()
        return attention(*seen[0], need_weights=True)[1][0]


def joint_memory(model: ReaderWriter, source: torch.Tensor) -> torch.Tensor:
    """What the writer of the second stage attends to: the reader's states, detached from its weights, and the
    source's [B, frames + S, d].
    """
    encoded = model.encode(source).detach()
    return torch.cat([model.read(encoded).detach(), encoded], 1)


def annealed(step: int, steps: int) -> float:
    """The writer's share of the first stage's loss: from 0, the reader alone, to 1 at the last step."""
    return step / steps


def collapsed(frames: list[int], blank: int) -> list[int]:
    """CTC's reading of frames: equal neighbours are merged, then blanks removed."""
    return [one for at, one in enumerate(frames) if one != blank and (not at or frames[at - 1] != one)]
