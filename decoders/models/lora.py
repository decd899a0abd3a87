"""Models that are shipped as a small change of another shipped model: low-rank updates of its matrices and
rows for added tokens, in the file format of PEFT, merged when loaded. After that they are plain causal LMs.

A folder holds config.json (of the merged model), adapter_config.json, adapter_model.safetensors and
added_tokens.json (token -> id); weights and tokenizer of the base, which ties its embeddings, are those of
its own folder. LoRA: Low-Rank Adaptation of Large Language Models (2021). Knows files and weights.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.modeling_utils import PreTrainedModel

CONFIG, WEIGHTS, TOKENS = "adapter_config.json", "adapter_model.safetensors", "added_tokens.json"
PREFIX = "base_model.model."  # of every name in the weights' file
ROWS = "model.embed_tokens"  # whose last rows belong to the added tokens
OWN = frozenset({"mask_token_id", "denoiser"})  # what config.json of a change may say that its base is not
DELTA = "token_adapter.trainable_tokens_delta"


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a change of another model."""
    return (folder / CONFIG).exists()


def base_of(folder: Path) -> Path:
    """The folder of the model that it changes: it lies beside it."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8"))["base_model_name_or_path"]


def tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """The base's tokenizer with the added tokens."""
    return with_tokens(AutoTokenizer.from_pretrained(base_of(folder)), added(folder))


def added(folder: Path) -> list[str]:
    """The added tokens in the order of their ids."""
    ids = json.loads((folder / TOKENS).read_text("utf-8"))
    return sorted(ids, key=ids.get)


def with_tokens(tokenizer: PreTrainedTokenizerBase, tokens: list[str]) -> PreTrainedTokenizerBase:
    """`tokenizer`, in which these are tokens too, with the next ids."""
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=True) for t in tokens], special_tokens=True)
    return tokenizer


def merged(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The base with `W + alpha / r · B A` for each changed matrix W, and the rows of the added tokens."""
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    weights = {k.removeprefix(PREFIX): v.float() for k, v in load_file(folder / WEIGHTS).items()}
    own = json.loads((folder / "config.json").read_text("utf-8"))
    base = base_of(folder)
    model = AutoModelForCausalLM.from_pretrained(
        base, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    )
    rows = weights.pop(f"{ROWS}.{DELTA}")
    model.resize_token_embeddings(model.config.vocab_size + len(rows), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[-len(rows) :] = rows
        for name in (n for n in weights if n.endswith(".lora_A.weight")):
            matrix = name.removesuffix(".lora_A.weight")
            change = weights[f"{matrix}.lora_B.weight"] @ weights[name]
            model.get_submodule(matrix).weight += config["lora_alpha"] / config["r"] * change
    for name in OWN.intersection(own):
        setattr(model.config, name, own[name])
    return model.to(dtype)
