"""A discrete flow model: an encoder reads a source, and a bidirectional decoder predicts the final token of
every position from a canvas at time t.

After Drax (Navon et al. 2025), which reads speech. The sampler decides when a position changes.
"""

import math

import torch
from torch import nn
from transformers import GenerationConfig, LlamaConfig, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm, LlamaRotaryEmbedding

TIME_SCALE = 100.0  # t in [0, 1] is encoded as a position from 0 to this
POSITION_SCALE = (
    2.0  # of position encodings relative to normed states, so that they dominate attention at first
)
LONGEST_WAVE = 100.0  # longest wavelength / 2 pi, in positions


def sinusoid(positions: torch.Tensor, width: int, longest: float = 1e4) -> torch.Tensor:
    """Sines and cosines [..., width] of positions [...], interleaved by frequency (Vaswani et al. 2017)."""
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device) * (-math.log(longest) / width))
    angles = positions[..., None].float() * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


class CrossAttention(nn.Module):
    """The canvas attends to the source. Queries and keys have position encodings, with the canvas shifted by
    `offset`.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        width = config.hidden_size
        self.heads, self.offset = config.num_attention_heads, config.source_offset
        self.norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.memory_norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, states: torch.Tensor, memory: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """states [B, L, D], memory [B, S, D], seen [B, S] bool -> [B, L, D], to be added."""
        memory = self.memory_norm(memory)
        places = torch.arange(states.shape[1], device=states.device) + self.offset
        sources = torch.arange(memory.shape[1], device=states.device)
        queries = self.q(self.norm(states) + self._positions(places).to(states.dtype))
        keys = self.k(memory + self._positions(sources).to(states.dtype))
        split = [x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (queries, keys, self.v(memory))]
        looked = nn.functional.scaled_dot_product_attention(*split, attn_mask=seen[:, None, None])
        return self.o(looked.transpose(1, 2).flatten(-2))

    def _positions(self, places: torch.Tensor) -> torch.Tensor:
        """Encodings [N, D], the same for every head, so that each can attend by position."""
        width = self.q.in_features // self.heads
        return POSITION_SCALE * sinusoid(places, width, LONGEST_WAVE).repeat(1, self.heads)


class FlowModel(PreTrainedModel):
    """config, in addition to Llama's: writing_layers (of the decoder), canvas (positions L),
    source_offset.
    """

    config_class, _supports_sdpa = LlamaConfig, True

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        width = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.rotary = LlamaRotaryEmbedding(config)
        self.readers = nn.ModuleList(LlamaDecoderLayer(config, n) for n in range(config.num_hidden_layers))
        self.looks = nn.ModuleList(CrossAttention(config) for _ in range(config.writing_layers))
        self.writers = nn.ModuleList(LlamaDecoderLayer(config, n) for n in range(config.writing_layers))
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.read_norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.token_norm = LlamaRMSNorm(width, config.rms_norm_eps)  # of the canvas's own tokens
        self.middle = CrossAttention(config)  # p_mid: each position attends to the source alone
        self.middle_norm = LlamaRMSNorm(width, config.rms_norm_eps)
        self.generation_config = GenerationConfig(eos_token_id=config.eos_token_id)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings."""
        return self.embed_tokens

    def get_output_embeddings(self) -> nn.Embedding:
        """The head, tied to the input embeddings."""
        return self.embed_tokens

    def _through(self, layer: nn.Module, states: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        places = torch.arange(states.shape[1], device=states.device)[None]
        turned = self.rotary(states, position_ids=places)
        mask = torch.zeros(seen.shape, dtype=states.dtype, device=states.device)
        mask = mask.masked_fill(~seen, torch.finfo(states.dtype).min)[:, None, None]
        return layer(states, attention_mask=mask, position_embeddings=turned, position_ids=places)

    def read(self, source: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Token ids [B, S] and their mask [B, S] -> states [B, S, D]."""
        states = embedded = self.embed_tokens(source)
        for layer in self.readers:
            states = self._through(layer, states, seen)
        return self.read_norm(states) + self.token_norm(embedded)

    def head(self, states: torch.Tensor) -> torch.Tensor:
        """Normed states [..., D] -> logits [..., V]."""
        return nn.functional.linear(states, self.embed_tokens.weight)

    def middle_states(self, memory: torch.Tensor, seen: torch.Tensor, length: int) -> torch.Tensor:
        """States [B, length, D] of p_mid, for `head`: each position predicted independently from the source
        alone. For training.
        """
        empty = memory.new_zeros(len(memory), length, memory.shape[-1])
        return self.middle_norm(self.middle(empty, memory, seen))

    def write_states(
        self, canvas: torch.Tensor, t: torch.Tensor, memory: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        """Embedded canvas [B, L, D] at times t [B] -> states [B, L, D] of the final tokens, for `head`."""
        clock = sinusoid(t * TIME_SCALE, canvas.shape[-1]).to(canvas.dtype)
        states = canvas + self.time(clock)[:, None]
        everything = torch.ones(canvas.shape[:2], dtype=torch.bool, device=canvas.device)
        for look, layer in zip(self.looks, self.writers, strict=True):
            states = states + look(states, memory, seen)
            states = self._through(layer, states, everything)
        return self.norm(states)

    def write(
        self, canvas: torch.Tensor, t: torch.Tensor, memory: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        """Token ids [B, L] at times t [B] -> logits [B, L, V] of the final tokens."""
        return self.head(self.write_states(self.embed_tokens(canvas), t, memory, seen))
