"""Texts that a model samples itself, in place of a corpus."""

import torch


@torch.no_grad()
def texts_of_model(model: torch.nn.Module, begin: int, rows: int, length: int) -> torch.Tensor:
    """Texts [rows, length] sampled at temperature 1 after the token `begin`, on the model's device, from
    PyTorch's global random state; end-of-text tokens do not end them.
    """
    ids = torch.full((rows, 1), begin, device=model.device)
    wrote = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        top_k=0,
        max_new_tokens=length,
        min_new_tokens=length,
        eos_token_id=None,
        pad_token_id=begin,
    )
    return wrote[:, 1:]
