"""Toy models of any architecture of transformers: its default config with small sizes, and random weights.

Sizes are shrunk by the names of fields; `EXCEPTIONS` holds what the names do not say. Of each kind of layer
one is kept, so a toy hybrid is a hybrid still.
"""

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.helpers import tiny_models

WORDS = len(tiny_models.tokenizer())
END = tiny_models.tokenizer().eos_token_id
WIDTH, HEADS, HEAD, LAYERS, CONTEXT, WINDOW = 32, 4, 8, 2, 256, 8
MOST_LAYERS = 4  # a toy model of as many kinds of layers has one of each
NO_MODELS = {  # architectures that transformers lists, and why they are no language models alone
    "gemma3n": "its image part needs the package timm",
    "gemma4_assistant": "drafts for Gemma 4 and reads its states",
    "gemma4_unified_assistant": "drafts for Gemma 4 and reads its states",
    "musicgen": "writes sounds after another model's states",
    "musicgen_melody": "writes sounds after another model's states",
}
LEFT_OUT = {"transformers_version", "architectures", "dtype", "torch_dtype", "model_type"}
SPREAD = 0.35  # of random weights: texts vary
PLACEHOLDER = 255  # the token of images and the like, which no prompt here has
# The first pattern that a field's name matches gives its size; a size is never made larger.
SIZES: list[tuple[str, int]] = [
    (r"^max_(position_embeddings|sequence_length|seq_len)$|^n_(positions|ctx)$", CONTEXT),
    (r"(num_)?(key_value|kv)_heads$|_(kv|k)_heads$|num_key_heads$", HEADS // 2),
    (r"_heads$|^n_head$|attention_heads", HEADS),
    (r"num_shared_experts|n_shared_experts", 1),
    (r"per_tok|top_?k|topk_group|moe_k$", 2),
    (r"n_group$", 2),
    (r"num_.*experts$|n_.*experts$|_num_experts$", 4),
    (r"layers$|^n_layer$|num_blocks|depth$", LAYERS),
    (r"lora_rank|_rank$", HEAD),
    (r"rope_head_dim|rotary_dim", HEAD // 2),
    (r"nope_head_dim|v_head_dim", HEAD),
    (r"head_dim$|d_kv$|_d_head$|head_size$", HEAD),
    (r"window|chunk_size|attention_chunk", WINDOW),
    (r"state_size|d_state|ssm_state", HEAD),
    (r"moe_intermediate|expert_ffn|expert_intermediate|expert_dim", 16),
    (r"ffn|intermediate|n_inner|d_ff|mlp_dim|feedforward", 48),
    (r"emb|hidden_size|d_model|^dim$|_dim$|_width$|_size$|_channels$", WIDTH),
]
# Architecture -> fields whose toy values their names do not tell.
MAMBA_HEADS = {"mamba_n_heads": 8, "mamba_d_head": 8}
CALM = {"initializer_range": 0.2}  # larger weights magnify the rounding of Mamba 2 from layer to layer
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
ZAMBA = {
    "num_hidden_layers": 4,
    "layers_block_type": ["linear_attention", "hybrid"] * 2,
    "attention_hidden_size": 2 * WIDTH,
    "attention_head_dim": 2 * HEAD,
}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"num_expert_group": 2},
    "bamba": MAMBA_HEADS | {"attn_layer_indices": [1]},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": PLAIN_ROPE, "sliding_attention": PLAIN_ROPE},
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "cpmant": {"dim_head": HEAD, "dim_ff": 48},
    "ctrl": {"dff": 48},
    "dbrx": {
        "num_key_value_heads": 2,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
    },
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots3_note_text": {
        "per_layer_config": {2: {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 12}}
    },
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "falcon_h1": MAMBA_HEADS | {"mamba_d_ssm": 2 * WIDTH},
    "gpt_neo": {
        "num_layers": 2,
        "attention_types": [[["global", "local"], 1]],
        "attention_layers": ["global", "local"],
    },
    "granitemoehybrid": MAMBA_HEADS | {"layer_types": ["linear_attention", "full_attention"]},
    "hrm_text": {"num_hidden_layers": 2, "num_layers_per_stack": None, "H_cycles": 1, "L_cycles": 1},
    "inkling2_text": {"unpadded_vocab_size": WORDS},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {"zero_expert_num": 2},
    "mamba2": {"num_heads": 8, "n_groups": 2},
    "marian": {"decoder_vocab_size": WORDS},
    "nemotron_h": CALM | {"mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 2},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": HEAD,
        "indexer_budget": WINDOW,
        "indexer_compress_ratio": 2,
    },
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {
        "axial_pos_shape": [8, 32],
        "axial_pos_embds_dim": [8, 24],
        "local_attn_chunk_length": WINDOW,
        "lsh_attn_chunk_length": WINDOW,
        "attn_layers": ["local", "lsh"],
    },
    "xlnet": {"d_head": HEAD, "d_inner": 48},
    "xlstm": {"hidden_size": 128, "embedding_dim": 128},
    "xmod": {"default_language": "en_XX"},
    "zamba": ZAMBA | {"mamba_dt_rank": 4},
    "zamba2": CALM
    | ZAMBA
    | {
        "n_mamba_heads": 8,
        "mamba_headdim": 8,
        "kv_channels": HEAD,
        "num_query_groups": HEADS,
        "hybrid_layer_ids": [1, 3],
    },
}


def size_of(name: str, value: int) -> int:
    """A field's toy size."""
    small = next((size for pattern, size in SIZES if re.search(pattern, name)), value)
    return min(value, small)


def representatives(fields: dict[str, Any], count: int) -> list[int]:
    """The layers that a toy model keeps: the first of each kind, and at least `LAYERS` of them."""
    kinds = list(zip(*(v for v in fields.values() if is_per_layer(v, count)), strict=True))
    kept: dict[Any, int] = {}
    for layer, kind in enumerate(map(repr, kinds)):
        kept.setdefault(kind, layer)
    chosen = sorted(kept.values())
    return chosen if len(chosen) >= LAYERS else sorted({*chosen, *range(LAYERS)})[:LAYERS]


def is_per_layer(value: Any, count: int) -> bool:
    """Whether a field is a list with an entry for each layer, not the numbers of some layers."""
    return isinstance(value, list) and len(value) == count > LAYERS and not are_layers(value, count)


def are_layers(value: Any, count: int) -> bool:
    """Whether a field is a list of the numbers of some layers."""
    ints = isinstance(value, list) and all(type(one) is int for one in value)
    return ints and len(value) > 0 and value == sorted(set(value)) and value[-1] < count


def shrunk(config: PreTrainedConfig, own: dict[str, Any]) -> dict[str, Any]:
    """The fields of a toy config; `own` replaces what the names of fields would give."""
    fields = with_few_layers(config)
    small = {name: toy_value(config, name, value) for name, value in fields.items() if name not in LEFT_OUT}
    return small | fixed(small) | own


def with_few_layers(config: PreTrainedConfig) -> dict[str, Any]:
    """The fields of a config with one layer of each kind."""
    fields = config.to_dict()
    count = fields.get("num_hidden_layers") or 0
    if not any(is_per_layer(value, count) for value in fields.values()):
        return fields
    layers = representatives(fields, count)
    for name, value in fields.items():
        if is_per_layer(value, count):
            fields[name] = [value[i] for i in layers]
        elif re.search("layers$|idx|ids", name) and are_layers(value, count):
            fields[name] = [at for at, i in enumerate(layers) if i in value]
    fields["num_hidden_layers"] = len(layers)
    if config.is_heterogeneous:
        fields["per_layer_config"] = shrunk_overrides(config, layers)
    return fields


def toy_value(config: PreTrainedConfig, name: str, value: Any) -> Any:
    """The value of a field in a toy config."""
    if name in config.sub_configs and isinstance(value, dict):
        part = getattr(config, name)
        return shrunk(part, EXCEPTIONS.get(part.model_type, {}))
    if isinstance(value, list) and all(type(one) is int for one in value):
        return [size_of(name, one) for one in value]
    if type(value) is not int or name == "num_hidden_layers" and value <= MOST_LAYERS:
        return value
    if name.endswith(("token_id", "token_index", "_idx")):
        return value if value < WORDS else PLACEHOLDER
    return size_of(name, value)


def fixed(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the same value in all toy models, and those that follow from others."""
    values = {
        **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "n_vocab"), WORDS),
        **dict.fromkeys(("initializer_range", "init_std"), SPREAD),
        "is_decoder": True,
        "eos_token_id": END,
        "head_dim": fields.get("head_dim") or HEAD,
        "num_key_value_heads": fields.get("num_key_value_heads") or HEADS // 2,
    }
    if fields.get("kv_lora_rank"):  # latents, of which keys and values of all heads are made
        rotated, rest = fields["qk_rope_head_dim"], fields["qk_nope_head_dim"]
        values |= {"num_key_value_heads": HEADS, "head_dim": rotated, "qk_head_dim": rotated + rest}
    return {name: value for name, value in values.items() if name in fields}


def shrunk_overrides(config: PreTrainedConfig, layers: list[int]) -> dict[int, dict[str, Any]]:
    """What differs from the global fields in some layers, and differs still: twice or half the toy size."""
    overrides: dict[int, dict[str, Any]] = {}
    for at, layer in enumerate(layers):
        for name in config.per_layer_attributes or ():
            usual = config._getattr_without_heterogeneous_validation(name)
            here = getattr(config.per_layer_config[layer], name)
            if here != usual:
                small = size_of(name, usual)
                overrides.setdefault(at, {})[name] = small * 2 if here > usual else small // 2
    return overrides


def config_of(architecture: str) -> PreTrainedConfig:
    """The toy config of an architecture, as transformers calls it (`model_type`)."""
    kind = CONFIG_MAPPING[architecture]
    return kind(**shrunk(kind(), EXCEPTIONS.get(architecture, {})))


def model_of(config: PreTrainedConfig) -> torch.nn.Module:
    """A model with random weights, always the same ones."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    for weight in model.parameters():
        if not weight.isfinite().all():  # memory that its code leaves as it is
            torch.nn.init.normal_(weight, std=SPREAD)
    model.generation_config = GenerationConfig(eos_token_id=END, pad_token_id=END)
    return model.eval().requires_grad_(False)


def save(architecture: str, folder: Path) -> str:
    """Writes a toy model with its tokenizer to a folder; the folder's name."""
    config = config_of(architecture)
    model = model_of(config)
    model.save_pretrained(folder)
    if model.config.model_type != config.model_type:  # the text part of what a folder holds
        config.save_pretrained(folder)
    tiny_models.tokenizer.__wrapped__().save_pretrained(folder)
    return str(folder)
