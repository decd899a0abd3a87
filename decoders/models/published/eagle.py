"""EAGLE drafters in the formats of their authors, vLLM, SGLang and the library speculators.

Tensors in the authors' files: EAGLE 1 and 2 have `fc`, `layers.0` without an input norm, `embed_tokens`;
EAGLE-3 has `fc` over three states, `midlayer` (`layers.0` in speculators and newer files) with `hidden_norm`
and `input_layernorm`, `norm`, `lm_head`, `d2t` (the target's id minus the draft's) and `t2d` (which of the
target's tokens are kept).
"""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from decoders.heads import DraftModule, Eagle, Eagle3, Target
from decoders.heads.feature_drafters.eagle3 import Published, tapped
from decoders.heads.parts.layers import LayerForm
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

LAYER = {  # name in a Llama layer -> name in our module
    "self_attn.q_proj": "attention.q",
    "self_attn.k_proj": "attention.k",
    "self_attn.v_proj": "attention.v",
    "self_attn.o_proj": "attention.out",
    "self_attn.q_norm": "attention.q_norm",
    "self_attn.k_norm": "attention.k_norm",
    "mlp.gate_proj": "feed.gate",
    "mlp.up_proj": "feed.up",
    "mlp.down_proj": "feed.down",
    "post_attention_layernorm": "norm",
}
TOP = {"fc": "join"}
TOP_3 = {
    "fc": "fuse",
    "norm": "last_norm",
    "lm_head": "head",
    "layers.0.hidden_norm": "state_norm",
    "layers.0.input_layernorm": "token_norm",
}


def flat(config: dict) -> dict:
    """The config of the drafter's layer, which speculators nests."""
    return config | config.get("transformer_layer_config", {})


def renamed(tensors: Tensors) -> Tensors:
    """Tensors under the authors' names, without those that are not weights."""
    result = {}
    for name, value in tensors.items():
        plain = name.removeprefix("model.").replace("midlayer.", "layers.0.")
        if not plain.endswith(("rotary_emb.inv_freq", "masked_bias")) and not plain.startswith("verifier_"):
            result[plain] = value
    return result


def layer_form(name: str, config: dict, tensors: Tensors) -> LayerForm:
    """The form of a published layer's attention. Raises ValueError with one sentence if it is not
    supported.
    """
    if config.get("hidden_act", "silu") != "silu":
        raise Refusal(f"The heads {name!r} use {config['hidden_act']}, and only silu is known here.")
    if config.get("num_hidden_layers", 1) != 1:
        raise Refusal(
            f"The heads {name!r} have {config['num_hidden_layers']} layers; only one is known here."
        )
    rope = config.get("rope_parameters") or {
        "rope_theta": config.get("rope_theta", 10000.0),
        **({"rope_type": "default"} | (config.get("rope_scaling") or {})),
    }
    if "type" in rope:  # older name of rope_type
        rope = {**rope, "rope_type": rope["type"]}
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    longest = config.get("max_position_embeddings", 2048)
    shape = dict(hidden_size=heads * size, num_attention_heads=heads, head_dim=size)
    turning = LlamaRotaryEmbedding(
        LlamaConfig(**shape, max_position_embeddings=longest, rope_parameters=rope)
    )
    return LayerForm(
        heads,
        config.get("num_key_value_heads") or heads,
        size,
        rope["rope_theta"],
        bias="layers.0.self_attn.q_proj.bias" in tensors,
        qk_eps=config.get("rms_norm_eps", 1e-6) if "layers.0.self_attn.q_norm.weight" in tensors else None,
        turns=turning.inv_freq,
        turn_scale=turning.attention_scaling,
    )


def places(tensors: Tensors, top: dict[str, str]) -> dict[str, str]:
    """Name in the file -> name in the module, for the tensors that the file has."""
    known = top | {f"layers.0.{theirs}": ours for theirs, ours in LAYER.items()}
    pairs = (
        (f"{theirs}.{kind}", f"{ours}.{kind}")
        for theirs, ours in known.items()
        for kind in ("weight", "bias")
    )
    return {theirs: ours for theirs, ours in pairs if theirs in tensors or theirs.endswith("weight")}


def embedded(module: DraftModule, tensors: Tensors, width: int, name: str) -> None:
    """Removes the drafter's input embedding from `tensors`, and stores it in the module unless it is the
    target's.
    """
    own = tensors.pop("embed_tokens.weight", None)
    theirs = module.target.embed
    if own is None or (own.shape == theirs.shape and torch.equal(own.to(theirs), theirs)):
        if width != module.target.width:
            raise Refusal(
                f"The heads {name!r} have the width {width:,} and no embedding of their own; that of the "
                f"target has the width {module.target.width:,}."
            )
        return
    same(name, "vocabulary", own.shape[0], theirs.shape[0], "the target")
    module.own_embedding = torch.nn.Embedding.from_pretrained(own.clone())


def only_known(known: dict[str, str], module: torch.nn.Module) -> dict[str, str]:
    """`known` without places that the module lacks, such as optional query norms."""
    state = module.state_dict()
    return {theirs: ours for theirs, ours in known.items() if ours in state}


def read_eagle(name: str, config: dict, tensors: Tensors, target: Target) -> Eagle:
    """Reads EAGLE 1 and 2. Raises ValueError with one sentence if it does not fit the target."""
    config, tensors = flat(config), renamed(tensors)
    same(name, "hidden size", config["hidden_size"], target.width, "the target")
    same(name, "vocabulary", config["vocab_size"], len(target.head), "the target")
    tensors.pop("lm_head.weight", None)  # if present, it is the target's own
    module = Eagle(
        target,
        form=layer_form(name, config, tensors),
        intermediate=config["intermediate_size"],
        eps=config.get("rms_norm_eps", 1e-6),
        bias="fc.bias" in tensors,
    )
    embedded(module, tensors, target.width, name)
    names = places(tensors, TOP)
    if module.own_embedding is not None:
        tensors["own_embedding.weight"] = module.own_embedding.weight
        names["own_embedding.weight"] = "own_embedding.weight"
    fill(name, module, tensors, only_known(names, module))
    return module


def read_eagle3(name: str, config: dict, tensors: Tensors, target: Target) -> Eagle3:
    """Reads EAGLE-3, the authors' or speculators' form. Raises ValueError with one sentence if it does not
    fit.
    """
    config, tensors = flat(config), renamed(tensors)
    width, taken = config["hidden_size"], tensors["fc.weight"].shape[1]
    asked = config.get("eagle_aux_hidden_state_layer_ids") or config.get("eagle_config", {}).get(
        "eagle_aux_hidden_state_layer_ids"
    )
    reads = tuple(asked or tapped(target.layers))
    if bad := [layer for layer in reads if not 0 <= layer < target.layers]:
        raise Refusal(f"The heads {name!r} read layer {bad[0]}, and the target has {target.layers} layers.")
    same(name, "number of states times their width", taken, len(reads) * target.width, "the target")
    vocabulary = len(tensors["t2d"]) if "t2d" in tensors else config["vocab_size"]
    same(name, "vocabulary", vocabulary, len(target.head), "the target")
    before = 1 if config.get("norm_before_fc") else len(reads) if config.get("fc_norm") else 0
    own = Published(
        width,
        layer_form(name, config, tensors),
        config.get("rms_norm_eps", 1e-6),
        bool(config.get("norm_before_residual", False)),
        before,
        bool(config.get("norm_output", False)),
    )
    kept = tensors.pop("d2t", None)
    mask = tensors.pop("t2d", None)
    words = tensors["lm_head.weight"].shape[0]
    module = Eagle3(target, words, reads, intermediate=config["intermediate_size"], published=own)
    if kept is not None and len(kept) != words:
        raise Refusal(f"The heads {name!r} map {len(kept):,} tokens and have {words:,} in their vocabulary.")
    module.d2t.copy_(torch.zeros(words, dtype=torch.long) if kept is None else kept)
    if mask is not None and not torch.equal(mask.nonzero()[:, 0], module.kept.sort().values):
        raise Refusal(f"The heads {name!r} contradict themselves: d2t and t2d name different tokens.")
    embedded(module, tensors, width, name)
    names = places(tensors, TOP_3) | {"d2t": "d2t"}
    tensors["d2t"] = module.d2t
    if before:
        norms = ["input_norm"] if before == 1 else [f"fc_norm.{at}" for at in range(before)]
        names |= {f"{norm}.weight": f"before_fuse.{at}.weight" for at, norm in enumerate(norms)}
    if module.own_embedding is not None:
        tensors["own_embedding.weight"] = module.own_embedding.weight
        names["own_embedding.weight"] = "own_embedding.weight"
    fill(name, module, tensors, only_known(names, module))
    return module
