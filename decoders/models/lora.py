"""Models shipped as LoRA adapters of another shipped model: low-rank updates of its matrices and rows for
added tokens, in PEFT's file format, merged when loaded (LoRA: Low-Rank Adaptation of Large Language Models,
2021).

A folder holds config.json (of the merged model), adapter_config.json, adapter_model.safetensors and
added_tokens.json (token -> id). Weights and tokenizer of the base, which ties its embeddings, are in the
base's folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.modeling_utils import PreTrainedModel

CONFIG, WEIGHTS, TOKENS = "adapter_config.json", "adapter_model.safetensors", "added_tokens.json"
PREFIX = "base_model.model."  # of every name in the weights file
ROWS = "model.embed_tokens"  # its last rows belong to the added tokens
OWN = frozenset({"mask_token_id", "denoiser"})  # fields of an adapter's config.json that its base may lack
DELTA = "token_adapter.trainable_tokens_delta"


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter of another shipped model."""
    return (folder / CONFIG).exists() and not by_peft(folder)


def by_peft(folder: Path) -> bool:
    """Whether a folder holds an adapter as the package peft saves it (peft_adapter.py)."""
    if not (folder / CONFIG).is_file():
        return False
    own = '"inference_mode"' not in (folder / CONFIG).read_text("utf-8", errors="replace")
    return not (own and (folder / "config.json").exists())


def base_of(folder: Path) -> Path:
    """The folder of its base model, in the same parent folder."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8"))["base_model_name_or_path"]


def tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """The base's tokenizer with the added tokens."""
    return with_tokens(AutoTokenizer.from_pretrained(base_of(folder), trust_remote_code=False), added(folder))


def added(folder: Path) -> list[str]:
    """The added tokens in the order of their ids."""
    ids = json.loads((folder / TOKENS).read_text("utf-8"))
    return sorted(ids, key=ids.get)


def with_tokens(tokenizer: PreTrainedTokenizerBase, tokens: list[str]) -> PreTrainedTokenizerBase:
    """`tokenizer` with these tokens added, under the next ids."""
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=True) for t in tokens], special_tokens=True)
    return tokenizer


@dataclass(frozen=True)
class Adapter:
    """The contents of a folder: `scale · B A` for each changed matrix, and rows [tokens, d] of added
    tokens.
    """

    base: Path
    scale: float  # alpha / r
    matrices: dict[str, tuple[torch.Tensor, torch.Tensor]]  # name -> A [r, in], B [out, r]
    tokens: list[str]
    rows: torch.Tensor
    own: dict[str, object]  # fields of its config.json that the base's lacks


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder, in float32."""
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    weights = {k.removeprefix(PREFIX): v.float() for k, v in load_file(folder / WEIGHTS).items()}
    given = json.loads((folder / "config.json").read_text("utf-8"))
    rows = weights.pop(f"{ROWS}.{DELTA}")
    names = [name.removesuffix(".lora_A.weight") for name in weights if name.endswith(".lora_A.weight")]
    pairs = {n: (weights[f"{n}.lora_A.weight"], weights[f"{n}.lora_B.weight"]) for n in names}
    own = {name: given[name] for name in OWN.intersection(given)}
    return Adapter(base_of(folder), config["lora_alpha"] / config["r"], pairs, added(folder), rows, own)


def with_low_rank_change(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The base with `W + alpha / r · B A` for each changed matrix W, and the rows of the added tokens."""
    adapter = read_adapter(folder)
    model = AutoModelForCausalLM.from_pretrained(
        adapter.base, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    )
    return applied(model, adapter).to(dtype)


@torch.no_grad()
def applied(model: PreTrainedModel, adapter: Adapter) -> PreTrainedModel:
    """`model` with the adapter merged in place."""
    if adapter.tokens:
        model.resize_token_embeddings(model.config.vocab_size + len(adapter.tokens), mean_resizing=False)
        model.get_input_embeddings().weight[-len(adapter.tokens) :] = adapter.rows
    for name, (a, b) in adapter.matrices.items():
        model.get_submodule(name).weight += adapter.scale * (b @ a)
    for name, value in adapter.own.items():
        setattr(model.config, name, value)
    return model
