"""Random instances of every small architecture, for tests: a few thousand weights, with the vocabulary of the
tiny models.
"""

from functools import cache

import torch

from decoders.models.architectures import architectures
from decoders.models.architectures.causal import Architecture
from decoders.models.loaded_model import LoadedModel
from tests.helpers.tiny_models import tokenizer

SIZES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1
)
OWN = {  # what an architecture is given besides
    "tiny_yoco": dict(window=3),
    "tiny_sambay": dict(window=3, num_hidden_layers=8),
    "tiny_chunked_memory": dict(chunk=4, slots=3, num_hidden_layers=2),
    "tiny_dna": dict(pool=3),
    "tiny_megabyte": dict(global_width=32, global_layers=2, global_heads=2, num_hidden_layers=1),
    "tiny_mblm": dict(patches=(3, 2), widths=(24, 20, 16), layers=(2, 1, 1), heads=(2, 2, 2)),
}


def fresh(kind: str, seed: int = 0, dtype: torch.dtype = torch.float64, **own) -> Architecture:
    """A new random model with strong weights, so that differences are visible."""
    words = tokenizer()
    torch.manual_seed(seed)
    shape = SIZES | dict(vocab_size=len(words), eos_token_id=words.eos_token_id, max_position_embeddings=256)
    made = architectures()[kind][0]
    model = made(made.config_class(**shape | OWN.get(kind, {}) | own))
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.8 if "embed" in name else 0.3)
    return model.to(dtype).eval().requires_grad_(False)


@cache
def small(kind: str, seed: int = 0) -> LoadedModel:
    """The same model each time, with tokenizer and engine."""
    return LoadedModel(f"{kind}-{seed}", fresh(kind, seed, torch.float32), tokenizer())
