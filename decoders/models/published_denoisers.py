"""Masked-diffusion models that transformers does not support: LLaDA (Nie et al. 2025) and Dream (Ye et al.
2025), loaded as the Llama and Qwen2 that they are built on. None of their code runs.
"""

from typing import Any

from transformers import AutoConfig, LlamaConfig, Qwen2Config

from decoders.refusal import Refusal

LLADA_FIELDS = {  # Llama's field -> LLaDA's
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "mlp_hidden_size",
    "max_position_embeddings": "max_sequence_length",
    "rms_norm_eps": "rms_norm_eps",
    "tie_word_embeddings": "weight_tying",
    "attention_bias": "include_qkv_bias",
    "mask_token_id": "mask_token_id",
    "eos_token_id": "eos_token_id",
    "pad_token_id": "pad_token_id",
}
LLADA_WEIGHTS = {  # regular expression for LLaDA's names -> Llama's
    r"^model\.transformer\.wte\.": "model.embed_tokens.",
    r"^model\.transformer\.ln_f\.": "model.norm.",
    r"^model\.transformer\.ff_out\.": "lm_head.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.": r"model.layers.\1.input_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.": r"model.layers.\1.post_attention_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.q_proj\.": r"model.layers.\1.self_attn.q_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.k_proj\.": r"model.layers.\1.self_attn.k_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.v_proj\.": r"model.layers.\1.self_attn.v_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_out\.": r"model.layers.\1.self_attn.o_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.": r"model.layers.\1.mlp.gate_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.up_proj\.": r"model.layers.\1.mlp.up_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_out\.": r"model.layers.\1.mlp.down_proj.",
}


class LladaConfig(LlamaConfig):
    """Reads LLaDA's config.json as that of a Llama."""

    model_type = "llada"

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> LlamaConfig:
        """Raises Refusal with one sentence for variants that are not built like Llama."""
        if config_dict.get("block_type", "llama") != "llama":
            raise Refusal("only LLaDA models whose block_type is llama are known here.")
        fields = {ours: config_dict[theirs] for ours, theirs in LLADA_FIELDS.items() if theirs in config_dict}
        fields["vocab_size"] = config_dict.get("embedding_size") or config_dict["vocab_size"]
        rope = {"rope_type": "default", "rope_theta": config_dict.get("rope_theta", 10000.0)}
        return LlamaConfig.from_dict(fields | {"rope_parameters": rope, "weights_of": "llada"}, **kwargs)


class DreamConfig(Qwen2Config):
    """Reads Dream's config.json as that of a Qwen2 whose rows predict the next position."""

    model_type = "Dream"

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Qwen2Config:
        left_out = ("auto_map", "model_type", "architectures")
        fields = {name: value for name, value in config_dict.items() if name not in left_out}
        return Qwen2Config.from_dict(fields | {"predicts_next": True}, **kwargs)


def register() -> None:
    """Registers these configs with `AutoConfig`. May be called more than once."""
    for config in (LladaConfig, DreamConfig):
        AutoConfig.register(config.model_type, config, exist_ok=True)


def weight_names(config: Any) -> dict[str, str] | None:
    """Regular expression for weight names -> names here, for `from_pretrained`; None if the names are the
    same.
    """
    return LLADA_WEIGHTS if getattr(config, "weights_of", None) == "llada" else None
