"""Models without some of their blocks: temporarily, for a trial, or permanently, as an ordinary model.

A block is the attention or the MLP of a layer.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from decoders.engine.partial_forward import Blocks as Modules
from decoders.models.edited_names import Blocks
from decoders.refusal import Refusal

LAST = (
    "o_proj",
    "down_proj",
    "dense",
    "dense_4h_to_h",
    "c_proj",
    "fc2",
    "out_proj",
)  # names of a block's last matrix


def check_blocks(blocks: Blocks, total: int) -> None:
    """Raises Refusal with one sentence if a block's layer does not exist."""
    if (beyond := max(blocks.attention | blocks.mlp, default=-1)) >= total:
        raise Refusal(f"There is no layer {beyond + 1} to drop; the model has {total}.")


def modules_of(model: nn.Module) -> Modules:
    """The attentions and MLPs of a model. Raises Refusal with one sentence if they do not have the usual
    names.
    """
    try:
        found = Modules(model)
        _ = found.attention  # which is looked up when it is first asked for
    except AttributeError:
        raise Refusal(
            f"{type(model).__name__} has blocks of another form, which cannot be dropped; take another."
        ) from None
    return found


@contextmanager
def left_out(model: nn.Module, blocks: Blocks) -> Iterator[nn.Module]:
    """While this is open, these blocks are skipped."""
    parts = modules_of(model)
    check_blocks(blocks, len(parts.layers))

    def attention(hidden_states: torch.Tensor, *args: object, **options: object) -> tuple:
        return torch.zeros_like(hidden_states), None

    def mlp(hidden_states: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(hidden_states)

    skipped = [(parts.attention[at], attention) for at in blocks.attention]
    skipped += [(parts.mlp[at], mlp) for at in blocks.mlp]
    for module, nothing in skipped:
        module.forward = nothing
    try:
        yield model
    finally:
        for module, _ in skipped:
            del module.forward  # restores that of the class


@torch.no_grad()
def without_blocks(model: nn.Module, blocks: Blocks) -> nn.Module:
    """A copy without these blocks. A layer that loses both is removed. If it loses only one, that block's
    last matrix is set to zero: the block is still computed, but files and engine need no change.
    """
    result = copy.deepcopy(model)
    parts = modules_of(result)
    check_blocks(blocks, len(parts.layers))
    whole = blocks.attention & blocks.mlp
    for at in blocks.attention - whole:
        silence(parts.attention[at])
    for at in blocks.mlp - whole:
        silence(parts.mlp[at])
    kept = [at for at in range(len(parts.layers)) if at not in whole]
    base, config = result.base_model, result.config.get_text_config()
    layers = nn.ModuleList(parts.layers[at] for at in kept)
    setattr(base, "layers" if hasattr(base, "layers") else "h", layers)
    for at, layer in enumerate(layers):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):
                module.layer_idx = at
    config.num_hidden_layers = len(kept)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[at] for at in kept]
    return result


def silence(block: nn.Module) -> None:
    """Makes a block's output zero. Raises Refusal with one sentence if its last matrix has an unknown
    name.
    """
    last = next((getattr(block, name) for name in LAST if hasattr(block, name)), None)
    if last is None:
        raise Refusal(f"{type(block).__name__} ends in no matrix of a known name; drop whole layers.")
    last.weight.zero_()
    if getattr(last, "bias", None) is not None:
        last.bias.zero_()
