"""Builds the model that an edited name describes. Knows models and names, and no texts but those that the
model writes.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase
from transformers.modeling_utils import PreTrainedModel

from decoders.models import edited_names as names
from decoders.models import lora
from decoders.models.catalog import locate
from decoders.models.editing import depth, matrices
from decoders.models.editing.lora_algebra import combined
from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal


def changed(name: str, changes: names.Edited, base: LoadedModel) -> LoadedModel:
    """`base`, freshly loaded, with the changes that `name` describes. Raises Refusal with one sentence."""
    if getattr(base.model.config, "quantization_config", None):
        raise Refusal(f"The model {changes.base!r} is quantised already; edit one that is not.")
    model = base.model
    if changes.terms:
        model = with_modules(changes.base, model, base.tokenizer, changes.terms)
    model = edited(model, changes.edits, min(base.eos, default=0))
    return LoadedModel(name, model.eval().requires_grad_(False), base.tokenizer)


def edited(model: PreTrainedModel, edits: tuple[tuple[str, str], ...], begin: int) -> PreTrainedModel:
    """A copy with these edits applied in order. Wanda calibrates on text that the model samples after the
    token `begin`. Raises Refusal with one sentence.
    """
    for key, value in edits:
        model = edit(model, key, value, begin)
    return model


def edit(model: PreTrainedModel, key: str, value: str, begin: int) -> PreTrainedModel:
    """A copy with one edit of `names.FORM`."""
    if key == "drop":
        return depth.without_blocks(model, names.blocks(value))
    change: Callable[[str, torch.Tensor], torch.Tensor]
    if key == "bits":
        change = lambda name, weight: matrices.rounded_weight(weight, names.bits(value))
    elif key == "rank":
        change = lambda name, weight: matrices.low_rank(weight, names.share(value))
    elif key == "magnitude":
        pattern = names.share_or_pattern(value)
        change = lambda name, weight: matrices.pruned(weight, pattern)
    else:
        pattern = names.share_or_pattern(value)
        norms = matrices.input_norms(model, matrices.own_rows(model, begin))
        change = lambda name, weight: matrices.pruned(weight, pattern, norms[name])
    return matrices.edited(model, change)


def with_modules(
    base: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    terms: tuple[tuple[float, str], ...],
) -> PreTrainedModel:
    """`model` with a sum of low-rank modules, and their tokens added to `tokenizer`. Raises Refusal with
    one sentence if a name is not that of a module for this base.
    """
    adapters = []
    for weight, name in terms:
        folder = Path(locate(name)[0])
        if not lora.is_adapter(folder):
            raise Refusal(f"{name!r} is not a low-rank module; add one such as llama-tiny-verilog.")
        adapters.append((weight, lora.read_adapter(folder)))
    both = combined(adapters)
    if both.base.resolve() != Path(locate(base)[0]).resolve():
        raise Refusal(f"The modules change {both.base.name!r}, not {base!r}; name that model first.")
    lora.with_tokens(tokenizer, both.tokens)
    return lora.applied(model.float(), both).to(model.dtype)
