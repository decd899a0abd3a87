"""A Retro decoder (Borgeaud et al. 2022; InstructRetro, Wang et al. 2023): a Llama that also reads, chunk by
chunk, passages from a store that are similar to the chunk just written.

Chunk u retrieves its neighbours, which are read from its last token to the last but one of the next chunk. A
gate of 0 gives the plain decoder. Simplified: retrieval is by n-grams and not by embeddings, and neighbours
are encoded without attending to the text that retrieved them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig, LlamaConfig, LlamaModel, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm, apply_rotary_pos_emb

from decoders.models.architectures.source_stream import loss_of

PAPERS = ("instructretro",)
Chunk = tuple[int, ...]


class RetroConfig(LlamaConfig):
    """chunk: tokens per chunk; a neighbour is a chunk of the store and the one after it. after: decoder
    layers below the cross-attention. encoder_layers: bidirectional layers for neighbours. store_tokens: size
    of the store.
    """

    model_type = "retro"

    def __init__(
        self, chunk: int = 16, after: int = 1, encoder_layers: int = 2, store_tokens: int = 0, **rest: Any
    ):
        self.chunk, self.after, self.encoder_layers, self.store_tokens = (
            chunk,
            after,
            encoder_layers,
            store_tokens,
        )
        super().__init__(**rest)


class Store:
    """Chunks of texts, retrieved by the n-grams that they share with a chunk, weighted by rarity."""

    def __init__(self, tokens: Sequence[int], chunk: int, longest: int = 2):
        self.longest, size = longest, chunk
        self.chunks = [tuple(tokens[at : at + size]) for at in range(0, len(tokens) - size + 1, size)]
        self.holders: dict[Chunk, list[int]] = defaultdict(list)
        for at, one in enumerate(self.chunks[:-1]):  # the last one has no successor
            for gram in self.grams(one):
                self.holders[gram].append(at)

    def grams(self, chunk: Sequence[int]) -> set[Chunk]:
        """Its n-grams of one to `longest` tokens."""
        return {
            tuple(chunk[at : at + size])
            for size in range(1, self.longest + 1)
            for at in range(len(chunk) - size + 1)
        }

    def nearest(self, chunk: Sequence[int]) -> int | None:
        """The chunk that shares the rarest n-grams with this one, ties to the earlier; None if none shares
        any.
        """
        scores: Counter[int] = Counter()
        for gram in self.grams(chunk):
            holders = self.holders.get(gram, ())
            for at in holders:
                scores[at] += math.log(len(self.chunks) / len(holders))
        return min(scores, key=lambda at: (-round(scores[at], 9), at)) if scores else None

    def neighbour(self, chunk: Sequence[int]) -> list[int]:
        """The nearest chunk and the one after it; the first two where nothing is near."""
        at = self.nearest(chunk) or 0
        return [*self.chunks[at], *self.chunks[at + 1]]


class ChunkedCrossAttention(nn.Module):
    """Tokens attend to the neighbour of the last chunk that is complete at their position. Queries and keys
    have rotary positions, counted from that chunk's start.
    """

    def __init__(self, config: RetroConfig):
        super().__init__()
        width, self.heads = config.hidden_size, config.num_attention_heads
        self.norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate = nn.Parameter(torch.ones(()))

    def forward(
        self, states: torch.Tensor, neighbours: torch.Tensor, turns: tuple, asks: tuple
    ) -> torch.Tensor:
        """States [N, c, d] of tokens and their neighbours [N, 2 c, d] -> [N, c, d], to be added. turns, asks:
        cosines and sines at the places of neighbours and of tokens.
        """
        split = lambda x: x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        queries, keys = split(self.q(self.norm(states))), split(self.k(neighbours))
        queries, _ = apply_rotary_pos_emb(queries, queries, *asks)
        keys, _ = apply_rotary_pos_emb(keys, keys, *turns)
        looked = nn.functional.scaled_dot_product_attention(queries, keys, split(self.v(neighbours)))
        return self.gate * self.o(looked.transpose(1, 2).flatten(-2))


class RetroForCausalLM(PreTrainedModel):
    """A Llama with one chunked cross-attention, the encoder of neighbours, and the store in its weights."""

    config_class, _supports_sdpa = RetroConfig, True

    def __init__(self, config: RetroConfig):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.encoder = nn.ModuleList(LlamaDecoderLayer(config, n) for n in range(config.encoder_layers))
        self.encoder_norm = LlamaRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.cross = ChunkedCrossAttention(config)
        self.register_buffer("store_ids", torch.zeros(config.store_tokens, dtype=torch.int16))
        self.generation_config = GenerationConfig(eos_token_id=config.eos_token_id)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings, tied to the head."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Embedding:
        """The head, tied to the input embeddings."""
        return self.model.embed_tokens

    @cached_property
    def store(self) -> Store:
        """The store from which neighbours are retrieved."""
        return Store(self.store_ids.tolist(), self.config.chunk)

    def neighbours_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows [N, T] -> the neighbour [N, U, 2 c] of each complete chunk, except one that ends the row."""
        size = self.config.chunk
        whole = max(0, rows.shape[1] // size)
        ids = [
            [self.store.neighbour(row[u * size : (u + 1) * size]) for u in range(whole)]
            for row in rows.tolist()
        ]
        return torch.tensor(ids, device=rows.device).view(len(rows), whole, 2 * size)

    def turns(self, like: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of rotary positions at places [T]."""
        return self.model.rotary_emb(like, position_ids=places[None])

    def encoded(self, neighbours: torch.Tensor) -> torch.Tensor:
        """Token ids [N, 2 c] of neighbours -> states [N, 2 c, d], with bidirectional attention."""
        states = self.model.embed_tokens(neighbours)
        places = torch.arange(neighbours.shape[1], device=states.device)
        turned, open_mask = self.turns(states, places), states.new_zeros(1, 1, len(places), len(places))
        for layer in self.encoder:
            states = layer(
                states, attention_mask=open_mask, position_embeddings=turned, position_ids=places[None]
            )
        return self.encoder_norm(states)

    def read(self, states: torch.Tensor, neighbours: torch.Tensor) -> torch.Tensor:
        """What the cross-attention adds to states [N, T, d], given neighbours [N, U, 2 c]: zeros up to the
        last token of the first chunk.
        """
        size, (rows, length, width) = self.config.chunk, states.shape
        used = neighbours[:, : max(0, (length + 1 - size + size - 1) // size)]
        chunks = used.shape[1]
        if not chunks:
            return torch.zeros_like(states)
        first, last = size - 1, size - 1 + chunks * size  # tokens that read: the first chunk's last one on
        asking = nn.functional.pad(states, (0, 0, 0, max(0, last - length)))[:, first:last]
        asking = asking.reshape(rows * chunks, size, width)
        encoded = self.encoded(used.reshape(rows * chunks, 2 * size))
        places = torch.arange(2 * size, device=states.device)
        added = self.cross(
            asking, encoded, self.turns(encoded, places), self.turns(encoded, places[size - 1 : 2 * size - 1])
        )
        added = added.reshape(rows, chunks * size, width)[:, : length - first]
        return nn.functional.pad(added, (0, 0, first, 0))

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        neighbours: torch.Tensor | None = None,
    ) -> CausalLMOutput:
        """Logits [N, T, V], and the loss if labels [N, T] are given. neighbours [N, U, 2 c]: read in place of
        those from the store.
        """
        states = self.model.embed_tokens(input_ids)
        length = input_ids.shape[1]
        places = torch.arange(length, device=states.device)
        turned = self.turns(states, places)
        past = torch.full((length, length), torch.finfo(states.dtype).min, device=states.device)
        past = past.triu(1).to(states.dtype)[None, None]
        for at, layer in enumerate(self.model.layers):
            if at == self.config.after and self.cross.gate.item() != 0:
                given = self.neighbours_of(input_ids) if neighbours is None else neighbours
                states = states + self.read(states, given)
            states = layer(states, attention_mask=past, position_embeddings=turned, position_ids=places[None])
        states = self.model.norm(states)
        logits = nn.functional.linear(states, self.model.embed_tokens.weight)
        hidden = (states,) if output_hidden_states else None
        return CausalLMOutput(loss=loss_of(logits, labels), logits=logits, hidden_states=hidden)


MODEL = RetroForCausalLM
