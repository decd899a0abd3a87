"""The frozen trunk of the Parallel Decoder Transformer, with separate keys and values for its streams.

All streams share the prompt's keys and values and have their own after them. Needs a model built like Llama.
"""

from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from decoders.engine.attention_kernels import attend
from decoders.engine.engine import Work
from decoders.heads.parts.layers import turned
from decoders.heads.scorers.streams import ParallelStreams

KV = list[tuple[torch.Tensor, torch.Tensor]]  # of each layer: keys and values [R, H, M, D]


@dataclass
class Noted:
    """What R streams see of the bus: notes [R, N, n], which of them each of T states may read [R, T, N], and
    the sections [R] that the streams write. `weights` collects the attention on notes [R, T, N], layer by
    layer.
    """

    notes: torch.Tensor
    visible: torch.Tensor
    sections: torch.Tensor
    weights: list[torch.Tensor] = field(default_factory=list)


def through_layers(
    model: torch.nn.Module,
    x: torch.Tensor,
    positions: torch.Tensor,
    past: KV,
    sees: torch.Tensor,
    layers: range,
    streams: ParallelStreams | None = None,
    noted: Noted | None = None,
) -> tuple[torch.Tensor, KV]:
    """Runs states x [R, T, d] at positions [R, T] through some layers: (states after them, their keys and
    values [R, H, T, D], layer by layer). past: earlier keys and values of these layers; sees [R, M]: which of
    these a row may attend to. With `noted`, layers that have side modules use them.
    """
    base = model.base_model
    cos, sin = (part[:, None] for part in base.rotary_emb(x, positions))  # [R, 1, T, D]
    rows, count = positions.shape
    causal = torch.ones(count, count, dtype=torch.bool, device=x.device).tril().expand(rows, -1, -1)
    mask = torch.cat([sees[:, None].expand(-1, count, -1), causal], -1)[:, None]  # [R, 1, T, M + T]
    new: KV = []
    for at, index in enumerate(layers):
        layer = base.layers[index]
        attention, entered = layer.self_attn, layer.input_layernorm(x)
        q, k, v = (
            part(entered).unflatten(-1, (-1, attention.head_dim)).transpose(1, 2)
            for part in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        q, k = (part * cos + turned(part) * sin for part in (q, k))
        new.append((k, v))
        keys, values = (torch.cat(pair, 2) for pair in zip(past[at], (k, v), strict=True))
        shared = q.shape[1] != k.shape[1]
        mixed = attend(q, keys, values, attn_mask=mask, scale=attention.scaling, enable_gqa=shared)
        x = x + attention.o_proj(mixed.transpose(1, 2).flatten(2))
        side = streams.sides[index - streams.first] if noted and index >= streams.first else None
        if side is not None:
            delta, weights = side.noted(x, noted.notes, noted.visible)
            x = x + delta
            noted.weights.append(weights)
        x = x + layer.mlp(layer.post_attention_layernorm(x))
        if side is not None:
            x = x + side.adapted(x, noted.sections)
    return x, new


def nothing(model: torch.nn.Module, rows: int) -> KV:
    """Empty keys and values."""
    first = model.base_model.layers[0].self_attn
    size, weight = first.head_dim, first.k_proj.weight
    empty = weight.new_zeros(rows, len(weight) // size, 0, size)
    return [(empty, empty)] * model.config.num_hidden_layers


@dataclass(eq=False)
class Row:
    """One stream: the keys and values [1, H, M, D] of the tokens it has read, and the token it reads next."""

    section: int
    pending: int
    kv: KV

    @property
    def length(self) -> int:
        """How many tokens it has read since the streams diverged, including the prompt's last one."""
        return self.kv[0][0].shape[2]

    def cut(self, length: int) -> None:
        """Drops the keys and values after the first `length` tokens."""
        self.kv = [(k[:, :, :length], v[:, :, :length]) for k, v in self.kv]


class StreamTrunk:
    """A frozen model that reads one text, and streams that diverge at its last token."""

    def __init__(self, model: torch.nn.Module, streams: ParallelStreams):
        self.model, self.streams = model, streams
        self.kv, self.states = nothing(model, 1), []  # of the text; states [d] after each token, normed
        self.work = Work()
        self.layers = range(model.config.num_hidden_layers)

    @property
    def length(self) -> int:
        """How many tokens of the text have been read."""
        return self.kv[0][0].shape[2]

    @torch.inference_mode()
    def read_text(self, tokens: list[int]) -> torch.Tensor:
        """Reads T more tokens of the text with the frozen trunk alone; returns logits [T, V] after each."""
        where = self.kv[0][0].device
        positions = torch.arange(self.length, self.length + len(tokens), device=where)[None]
        x = self.model.get_input_embeddings()(torch.tensor([tokens], device=where))
        sees = torch.ones(1, self.length, dtype=torch.bool, device=where)
        x, new = through_layers(self.model, x, positions, self.kv, sees, self.layers)
        self.kv = concatenated_kv(self.kv, new)
        hidden = self.model.base_model.norm(x)[0]
        self.states += hidden.unbind()
        self.work = Work(len(tokens), rows=1)
        return self.model.get_output_embeddings()(hidden)

    def part(self, sections: list[int], last: int) -> list[Row]:
        """A stream for each section; each reads the text's last token again, with its side modules."""
        return [Row(section, last, nothing(self.model, 1)) for section in sections]

    @torch.inference_mode()
    def advance(self, rows: list[Row], notes: list[torch.Tensor], closed: bool = False) -> tuple:
        """Every row reads its pending token, in one forward: (logits [R, V], states [R, d] after the last
        layer, attention [N] on the notes for each row). notes: those that each row sees, [N, n]. closed:
        whether all gates are 0, so that the trunk reads alone.
        """
        where, longest = self.kv[0][0].device, max(row.length for row in rows)
        prompt = self.length - 1  # the last token is each stream's own
        past = []
        for at, (k, v) in enumerate(self.kv):
            own = ([row.kv[at][part] for row in rows] for part in (0, 1))
            pairs = zip((k, v), own, strict=True)
            past.append(
                tuple(
                    torch.cat(
                        [
                            shared[:, :, :prompt].expand(len(rows), -1, -1, -1),
                            torch.cat([F.pad(one, (0, 0, 0, longest - one.shape[2])) for one in each]),
                        ],
                        2,
                    )
                    for shared, each in pairs
                )
            )
        lengths = torch.tensor([[row.length] for row in rows], device=where)
        sees = torch.arange(prompt + longest, device=where) < prompt + lengths
        x = self.model.get_input_embeddings()(torch.tensor([[row.pending] for row in rows], device=where))
        noted = None if closed else self.noted(rows, notes)
        x, new = through_layers(self.model, x, prompt + lengths, past, sees, self.layers, self.streams, noted)
        for at, row in enumerate(rows):
            row.kv = concatenated_kv(row.kv, [(k[at : at + 1], v[at : at + 1]) for k, v in new])
        self.work = Work(len(rows), rows=len(rows))
        logits = self.model.get_output_embeddings()(self.model.base_model.norm(x[:, 0]))
        weights = torch.stack(noted.weights).mean(0)[:, 0] if noted else None
        looked = [[] if closed else weights[at, : len(own)].tolist() for at, own in enumerate(notes)]
        return logits, x[:, 0], looked

    def noted(self, rows: list[Row], notes: list[torch.Tensor]) -> Noted:
        """The notes of all rows, padded to equal numbers."""
        where = self.kv[0][0].device
        padded = torch.nn.utils.rnn.pad_sequence(notes, batch_first=True)
        counts = torch.tensor([[len(own)] for own in notes], device=where)
        visible = (torch.arange(padded.shape[1], device=where) < counts)[:, None]
        return Noted(padded, visible, torch.tensor([row.section for row in rows], device=where))


def concatenated_kv(past: KV, new: KV) -> KV:
    """Past and new keys and values concatenated."""
    return [(torch.cat([a, c], 2), torch.cat([b, d], 2)) for (a, b), (c, d) in zip(past, new, strict=True)]
