"""An untrained small Llama, for experiments that train their own models."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def small_llama(
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    seed: int = 0,
    inner: int | None = None,
    head: int | None = None,
) -> LlamaForCausalLM:
    """`layers` layers of width `width`, with shared input and output embeddings; the same for the same
    seed. inner: neurons of a feed-forward layer; head: width of a head.
    """
    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner or 8 * width // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=head or width // heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    return LlamaForCausalLM(shape)
