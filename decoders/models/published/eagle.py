"""EAGLE drafters in the formats of their authors, vLLM, SGLang and the library speculators.

Tensors in the authors' files: EAGLE 1 and 2 have `fc`, `layers.0` without an input norm, `embed_tokens`;
EAGLE-3 has `fc` over three states, `midlayer` (`layers.0` in speculators and newer files) with `hidden_norm`
and `input_layernorm`, `norm`, `lm_head`, `d2t` (the target's id minus the draft's) and `t2d` (which of the
target's tokens are kept).
"""

import re
from collections.abc import Callable

import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from decoders.heads import DraftModule, Eagle, Eagle3, Target
from decoders.heads.feature_drafters.eagle3 import Published, tapped
from decoders.heads.parts.layers import LayerForm
from decoders.models.published.config_keys import biased, only, says
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
OLDER = re.compile(r"^(fusion_fc|transformer)\.")  # in the first versions of speculators
NUMBERED = re.compile(r"layers\.(\d+)\.")
NAMED = "eagle_aux_hidden_state_layer_ids"
USED = {  # keys of the layer and of both kinds; layer_form and its caller read or check each
    "attention_bias",
    "bias",
    "draft_vocab_size",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "mlp_bias",
    "num_attention_heads",
    "num_hidden_layers",  # counted in the tensors: EAGLE3-Vicuna1.3-13B says 40, its target's
    "num_key_value_heads",
    "qkv_bias",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "target_hidden_size",
    "tie_word_embeddings",
    "transformer_layer_config",
    "use_sliding_window",
    "vocab_size",
    "decoder_sparse_step",  # of experts, which a layer with mlp.gate_proj has not
}
USED_3 = USED | {"eagle_config", "fc_norm", "norm_before_fc", "norm_before_residual", "norm_output", NAMED}
# What SGLang's and NVIDIA's `eagle_config` may say of the layer, and what it is here.
FIXED = {
    "next_layer_regular": True,
    "parallel_draft_step": 1,
    "use_aux_hidden_state": True,
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
}


def flat(config: dict) -> dict:
    """The config of the drafter's layer, which speculators nests."""
    return config | config.get("transformer_layer_config", {})


def renamed(tensors: Tensors) -> Tensors:
    """Tensors under the authors' names, without those that are not weights."""
    result = {}
    for name, value in tensors.items():
        plain = name.removeprefix("model.").replace("midlayer.", "layers.0.")
        plain = OLDER.sub(lambda match: {"fusion_fc": "fc", "transformer": "layers.0"}[match[1]] + ".", plain)
        if not plain.endswith(("rotary_emb.inv_freq", "masked_bias")) and not plain.startswith("verifier_"):
            result[plain] = value
    return result


def layers_of(tensors: Tensors) -> int:
    """How many decoder layers the tensors belong to."""
    return len({match[1] for key in tensors if (match := NUMBERED.match(key))})


def layer_form(name: str, config: dict, tensors: Tensors, layers: int = 1) -> LayerForm:
    """The form of the attention of published layers, of which there must be this many. Raises Refusal with
    one sentence if it is not supported.
    """
    if config.get("hidden_act", "silu") != "silu":
        raise Refusal(f"The heads {name!r} use {config['hidden_act']}, and only silu is known here.")
    if (found := layers_of(tensors)) != layers:
        raise Refusal(f"The heads {name!r} have {found} layers; only one is known here.")
    attention = "layers.0.self_attn.q_proj.bias"
    bias = biased(name, config, "qkv_bias" if "qkv_bias" in config else "attention_bias", tensors, attention)
    biased(name, config, "mlp_bias", tensors, "layers.0.mlp.gate_proj.bias")
    rope = rope_of(name, config)
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
        bias=bias,
        qk_eps=config.get("rms_norm_eps", 1e-6) if "layers.0.self_attn.q_norm.weight" in tensors else None,
        turns=turning.inv_freq,
        turn_scale=turning.attention_scaling,
        window=window_of(name, config),
    )


def rope_of(name: str, config: dict) -> dict:
    """The rotary positions as transformers' rope_parameters. Raises Refusal for a type that it lacks."""
    rope = config.get("rope_parameters") or {
        "rope_theta": config.get("rope_theta", 10000.0),
        **({"rope_type": "default"} | (config.get("rope_scaling") or {})),
    }
    if "type" in rope:  # older name of rope_type
        rope = {**rope, "rope_type": rope["type"]}
    if rope.get("rope_type") not in {"default", *ROPE_INIT_FUNCTIONS}:
        raise Refusal(
            f"The heads {name!r} have rotary positions of the type {rope.get('rope_type')!r}, which is not "
            "known here."
        )
    return rope


def window_of(name: str, config: dict, at: int = 0) -> int | None:
    """How many entries the layer `at` attends to, itself included; None for all. Raises Refusal where the
    config leaves it open.

    `layer_types` decides where it is given, as in vLLM and speculators. Without it, a window that
    `use_sliding_window` switches off does not count, nor does one of Llama, which has none.
    """
    kind = (config.get("layer_types") or [None] * (at + 1))[at]
    window = config.get("sliding_window")
    if kind == "full_attention":
        return None
    if kind == "sliding_attention" and window:
        return window
    if kind is not None:
        raise Refusal(f"The layer of the heads {name!r} has the type {kind!r}, which is not known here.")
    switched = config.get("use_sliding_window", config.get("model_type", "llama") != "llama")
    if not window or not switched:
        return None
    raise Refusal(
        f"The heads {name!r} name a sliding_window of {window:,}, and not whether their layer has it; say it "
        "in config.json with layer_types, as ['sliding_attention'] or ['full_attention']."
    )


def places(tensors: Tensors, top: dict[str, str]) -> dict[str, str]:
    """Name in the file -> name in the module, for the tensors that the file has."""
    return named(tensors, top | {f"layers.0.{theirs}": ours for theirs, ours in LAYER.items()})


def later_layers(tensors: Tensors, layers: range, ours: int) -> dict[str, str]:
    """As `places`, for whole Llama layers of these numbers in the file; the first is number `ours` of the
    module's `layers`.
    """
    known = LAYER | {"input_layernorm": "first_norm"}
    return named(
        tensors,
        {
            f"layers.{at}.{theirs}": f"layers.{ours + at - layers.start}.{name}"
            for at in layers
            for theirs, name in known.items()
        },
    )


def named(tensors: Tensors, known: dict[str, str]) -> dict[str, str]:
    """Name in the file -> name in the module, from modules' names to those of weights and biases; biases
    where the file has them.
    """
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
    """Reads EAGLE 1 and 2. Raises Refusal with one sentence if it does not fit the target."""
    config, tensors = flat(config), renamed(tensors)
    if config.pop("layernorms", False):
        raise Refusal(
            f"The heads {name!r} have norms before fc, in the layer and before the target's head "
            "(layernorms), which EAGLE's layer lacks here."
        )
    config["bias"] = config.pop("fusion_bias", config.get("bias", "fc.bias" in tensors))
    config.pop("transformer_layer_architecture", None)  # the names and shapes of its tensors are checked
    same(name, "hidden size", config["hidden_size"], target.width, "the target")
    only(name, config, USED)
    same(name, "vocabulary", config["vocab_size"], len(target.head), "the target")
    own_head = tensors.pop("lm_head.weight", None)
    if own_head is not None and len(own_head) != len(target.head):
        raise Refusal(
            f"The heads {name!r} bring an lm_head of {len(own_head):,} tokens, and EAGLE 1 and 2 use that of "
            f"the target, which has {len(target.head):,}."
        )
    says(name, config, "draft_vocab_size", config["vocab_size"], "vocab_size")
    says(name, config, "target_hidden_size", target.width, "the target")
    module = Eagle(
        target,
        form=layer_form(name, config, tensors),
        intermediate=config["intermediate_size"],
        eps=config.get("rms_norm_eps", 1e-6),
        bias=biased(name, config, "bias", tensors, "fc.bias"),
    )
    embedded(module, tensors, target.width, name)
    names = places(tensors, TOP)
    if module.own_embedding is not None:
        tensors["own_embedding.weight"] = module.own_embedding.weight
        names["own_embedding.weight"] = "own_embedding.weight"
    fill(name, module, tensors, only_known(names, module))
    return module


def read_eagle3(name: str, config: dict, tensors: Tensors, target: Target) -> Eagle3:
    """Reads EAGLE-3, the authors' or speculators' form. Raises Refusal with one sentence if it does not
    fit.
    """
    config, tensors = flat(config), renamed(tensors)
    only(name, config, USED_3)
    return fused(name, config, tensors, target, Eagle3, 1, {})


def fused(
    name: str,
    config: dict,
    tensors: Tensors,
    target: Target,
    make: Callable[..., Eagle3],
    layers: int,
    more: dict[str, str],
) -> Eagle3:
    """An EAGLE-3 of several layers that `make(target, words_kept, reads, intermediate, published)` builds,
    with the tensors of the file. more: places of tensors that EAGLE-3 lacks.
    """
    width, taken = config["hidden_size"], tensors["fc.weight"].shape[1]
    reads = layers_read(name, config, target.layers)
    same(name, "target's hidden size", config.get("target_hidden_size", target.width), target.width, "it")
    same(name, "number of states times their width", taken, len(reads) * target.width, "the target")
    vocabulary = len(tensors["t2d"]) if "t2d" in tensors else config["vocab_size"]
    same(name, "vocabulary", vocabulary, len(target.head), "the target")
    before = 1 if config.get("norm_before_fc") else len(reads) if config.get("fc_norm") else 0
    own = Published(
        width,
        layer_form(name, config, tensors, layers),
        config.get("rms_norm_eps", 1e-6),
        bool(config.get("norm_before_residual", False)),
        before,
        bool(config.get("norm_output", False)),
    )
    tensors["lm_head.weight"], tensors["d2t"] = vocabulary_of(name, config, tensors, target)
    words = len(tensors["d2t"])
    module = make(target, words, reads, intermediate=config["intermediate_size"], published=own)
    embedded(module, tensors, width, name)
    names = places(tensors, TOP_3) | {"d2t": "d2t"} | more
    if before:
        norms = ["input_norm"] if before == 1 else [f"fc_norm.{at}" for at in range(before)]
        names |= {f"{norm}.weight": f"before_fuse.{at}.weight" for at, norm in enumerate(norms)}
    if module.own_embedding is not None:
        tensors["own_embedding.weight"] = module.own_embedding.weight
        names["own_embedding.weight"] = "own_embedding.weight"
    fill(name, module, tensors, only_known(names, module))
    return module


def layers_read(name: str, config: dict, layers: int) -> tuple[int, ...]:
    """After how many of the target's layers the states are taken, each. Raises Refusal for layers that the
    target lacks, and for an `eagle_config` that asks for something else.

    At the top of a config, as in speculators and vLLM, an id counts the layers that have run (0: the
    embeddings). In `eagle_config`, as in SpecForge and SGLang, it is the index of the layer whose output is
    taken, one less: SGLang adds 1 before it captures what enters a layer. Without ids, the authors' three.
    """
    nested = config.get("eagle_config", {})
    only(name, nested, FIXED.keys() | {NAMED}, "eagle_config")
    for key, here in FIXED.items():
        if nested.get(key, here) != here:
            raise Refusal(
                f"The heads {name!r} set eagle_config.{key} to {nested[key]}, and only {here} is known here."
            )
    after = tuple(config.get(NAMED) or ())
    shifted = tuple(layer + 1 for layer in nested.get(NAMED) or ())
    if after and shifted and after != shifted:
        raise Refusal(
            f"The heads {name!r} contradict themselves: {NAMED} is {list(after)}, counted as layers that "
            f"have run, and eagle_config has {list(nested[NAMED])}, the indices of these layers; remove one."
        )
    reads = after or shifted or tapped(layers)
    if bad := [layer for layer in reads if not 0 <= layer < layers]:
        raise Refusal(f"The heads {name!r} read layer {bad[0]}, and the target has {layers} layers.")
    return reads


def vocabulary_of(
    name: str, config: dict, tensors: Tensors, target: Target
) -> tuple[torch.Tensor, torch.Tensor]:
    """The vocabulary matrix [W, d] and d2t [W], the target's id minus the draft's; takes d2t and t2d out of
    the tensors. Raises Refusal with one sentence if they do not fit each other or the target.
    """
    kept, mask = tensors.pop("d2t", None), tensors.pop("t2d", None)
    head = head_of(name, config, tensors, kept, target)
    says(name, config, "draft_vocab_size", len(head), "lm_head")
    offsets = torch.zeros(len(head), dtype=torch.long) if kept is None else kept
    ids = torch.arange(len(head)) + offsets.cpu()
    if mask is not None and not torch.equal(mask.nonzero()[:, 0].cpu(), ids.sort().values):
        raise Refusal(f"The heads {name!r} contradict themselves: d2t and t2d name different tokens.")
    return head, offsets


def head_of(
    name: str, config: dict, tensors: Tensors, kept: torch.Tensor | None, target: Target
) -> torch.Tensor:
    """The vocabulary matrix [W, d]: its own, or without one that of its embedding, if they are tied, or of
    the target. kept: d2t [W]. Raises Refusal if it is not said which of the target's tokens its rows are.
    """
    rows = len(target.head)
    ids = torch.arange(rows) if kept is None else torch.arange(len(kept)) + kept.cpu()
    if ids.unique().numel() != len(ids) or not ((ids >= 0) & (ids < rows)).all():
        raise Refusal(
            f"The heads {name!r} have a d2t that names tokens twice, or tokens beyond the target's."
        )
    head = tensors.get("lm_head.weight")
    if head is None:
        tied = bool(config.get("tie_word_embeddings", False))
        whole = tensors.get("embed_tokens.weight", target.embed) if tied else target.head
        return whole[ids.to(whole.device)]
    if kept is None and len(head) != rows:
        raise Refusal(
            f"The heads {name!r} have a vocabulary of {len(head):,} tokens and no d2t that says which of the "
            f"target's {rows:,} these are."
        )
    if kept is not None and len(kept) != len(head):
        raise Refusal(
            f"The heads {name!r} map {len(kept):,} tokens and have {len(head):,} in their vocabulary."
        )
    return head
