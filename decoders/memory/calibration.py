"""What a policy measures on a model before it is used: keys and values of text that the model writes itself.

Calibration text is drawn from the model, so that a memory needs no corpus; the papers use one.
"""

import weakref

import torch

ROWS, LENGTH = 32, 64
_known: "weakref.WeakKeyDictionary[torch.nn.Module, tuple]" = weakref.WeakKeyDictionary()


@torch.inference_mode()
def own_text(model: torch.nn.Module, rows: int = ROWS, length: int = LENGTH, seed: int = 0) -> torch.Tensor:
    """Tokens [rows, length] drawn from the model at temperature 1, after its first token."""
    generator = torch.Generator(model.device).manual_seed(seed)
    config = model.config.get_text_config()
    first = config.bos_token_id if config.bos_token_id is not None else 0
    newest, past = torch.full((rows, 1), int(first), device=model.device), None
    drawn = [newest]
    for _ in range(length - 1):
        output = model(input_ids=newest, past_key_values=past, use_cache=True)
        past = output.past_key_values
        newest = torch.multinomial(output.logits[:, -1].float().softmax(-1), 1, generator=generator)
        drawn.append(newest)
    return torch.cat(drawn, dim=1)


@torch.inference_mode()
def keys_and_values(model: torch.nn.Module, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What a model's cache holds after `tokens` [B, T]: keys and values [L, Hkv, B, T, D]."""
    cache = model(input_ids=tokens, use_cache=True).past_key_values
    keys, values = zip(*((layer.keys, layer.values) for layer in cache.layers), strict=True)
    return torch.stack(keys).transpose(1, 2), torch.stack(values).transpose(1, 2)


def measured(model: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of the model's own text, measured once per model."""
    if model not in _known:
        length = min(LENGTH, getattr(model.config.get_text_config(), "max_position_embeddings", LENGTH))
        _known[model] = keys_and_values(model, own_text(model, length=length))
    return _known[model]
