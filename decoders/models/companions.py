"""Shipped models of other kinds that share a causal model's tokens, perhaps with a mask or other tokens
added.
"""

import json
from pathlib import Path

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MULTIMODAL_LM_MAPPING,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

from decoders.models import architectures, lora, rounded_change
from decoders.models.catalog import SHIPPED, kind, with_weights
from decoders.models.flow import FlowModel
from decoders.models.model_files import read_weights, tokenizer_of

Companion = tuple[str, torch.nn.Module, PreTrainedTokenizerBase]
KINDS = {  # kind of model that a strategy may decode with -> its name in messages
    "causal": "a causal language model",
    "diffusion": "a masked-diffusion model",
    "set_block": "a model that fills blocks of masks after a causal past",
    "flow": "a discrete flow model",
    "deer": "a masked-diffusion model that learned to draft",
    "wedlm": "a causal model that fills masks",
    "lud": "a model that predicts lexical units at placeholders",
    "seq2seq": "an encoder-decoder",
}


def shipped_companion(
    tokenizer: PreTrainedTokenizerBase, wanted: str, dtype: torch.dtype, device: torch.device
) -> Companion | None:
    """The shipped model of kind `wanted` with these tokens: (name, model in evaluation mode, tokenizer); None
    if there is none. Causal models are never companions.
    """
    if wanted == "causal":
        return None
    vocabulary = tokenizer.get_vocab()
    for path in sorted(SHIPPED.glob("*/config.json")):
        config, folder = json.loads(path.read_text("utf-8")), path.parent
        if kind(config) != wanted:
            continue
        own = tokenizer_of(folder)
        if {token: at for token, at in own.get_vocab().items() if at < len(vocabulary)} == vocabulary:
            model = loaded(with_weights(folder.name), dtype)
            return folder.name, model.to(device).eval().requires_grad_(False), own
    return None


def loaded(folder: Path, dtype: torch.dtype) -> torch.nn.Module:
    """The model in a folder, which may be stored as a change of another model."""
    if rounded_change.is_change(folder):
        return rounded_change.with_change(folder, dtype)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if lora.is_adapter(folder):
        return lora.with_low_rank_change(folder, dtype)
    architectures.register_unless_known(config["model_type"])
    return read_weights(folder.name, class_of(config), folder, dtype=dtype)[0]


def class_of(config: dict) -> type:
    """The class that loads a model with this config.json."""
    classes = {"flow": FlowModel, "seq2seq": AutoModelForSeq2SeqLM}
    return classes.get(kind(config), AutoModelForCausalLM)


def whole_class(config: PreTrainedConfig) -> type | None:
    """transformers' class of a model that reads images or sound besides text; None for any other model, and
    where a class of its own reads the text part out of the same files.
    """
    whole = MODEL_FOR_MULTIMODAL_LM_MAPPING.get(type(config), None)
    alone = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    return whole if alone is None or alone is whole else None
