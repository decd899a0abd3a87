"""Builds the model that an edited name describes."""

from collections.abc import Callable

import torch
from transformers import PreTrainedTokenizerBase
from transformers.modeling_utils import PreTrainedModel

from decoders.models import edited_names as names
from decoders.models import lora
from decoders.models.editing import depth, matrices
from decoders.models.editing.lora_algebra import combined
from decoders.models.loaded_model import LoadedModel
from decoders.models.names import Edited, Hub, Local, stored
from decoders.refusal import Refusal


def changed(asked: Edited, base: LoadedModel) -> LoadedModel:
    """`base`, freshly loaded, with the changes that are asked for. Raises Refusal with one sentence."""
    if getattr(base.model.config, "quantization_config", None):
        raise Refusal(f"The model {asked.base.name!r} is quantised already; edit one that is not.")
    model = base.model
    if asked.terms:
        model = with_modules(asked.base, model, base.tokenizer, asked.terms)
    model = edited(model, asked.edits, min(base.eos, default=0))
    return LoadedModel(asked.name, model.eval().requires_grad_(False), base.tokenizer)


def edited(model: PreTrainedModel, edits: names.Edits, begin: int) -> PreTrainedModel:
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
    base: Local,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    terms: tuple[tuple[float, Local], ...],
) -> PreTrainedModel:
    """`model` with a sum of low-rank modules, and their tokens added to `tokenizer`. Raises Refusal with
    one sentence if a name is not that of a module for this base.
    """
    adapters = []
    for weight, module in terms:
        if isinstance(module, Edited | Hub) or not lora.is_adapter(module.folder):
            raise Refusal(f"{module.name!r} is not a low-rank module; add one such as llama-tiny-verilog.")
        adapters.append((weight, lora.read_adapter(module.folder)))
    both, whole = combined(adapters), stored(base)
    if isinstance(whole, Hub) or both.base.resolve() != whole.folder.resolve():
        raise Refusal(f"The modules change {both.base.name!r}, not {base.name!r}; name that model first.")
    lora.with_tokens(tokenizer, both.tokens)
    return lora.applied(model.float(), both).to(model.dtype)
