"""DFlash in the formats of its authors (z-lab) and of the library speculators.

Tensors of both: `fc` over the target's states, `hidden_norm`, `layers.N` (Qwen3's), `norm`; speculators adds
`embed_tokens`, `lm_head` and, for a small vocabulary, `d2t` and `t2d`. The authors' `dflash_config` has
`target_layer_ids`, the indices of the layers whose outputs are read; `aux_hidden_state_layer_ids` of
speculators counts the layers that have run, one more.
"""

from dataclasses import replace

import torch

from decoders.heads import DFlash, Target
from decoders.heads.path_independent.dflash import Published
from decoders.models.published.config_keys import only, says
from decoders.models.published.eagle import (
    USED,
    embedded,
    flat,
    later_layers,
    layer_form,
    layers_of,
    named,
    renamed,
    vocabulary_of,
    window_of,
)
from decoders.models.published.peagle import mask_token
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

TOP = {"fc": "fuse", "hidden_norm": "hidden_norm", "norm": "last_norm", "lm_head": "head"}
OWN = "dflash_config"
USED_HERE = USED | {
    "aux_hidden_state_layer_ids",
    "block_size",
    "mask_token_id",
    "num_target_layers",
    "sample_from_anchor",
    "sliding_window_non_causal",
    OWN,
}
# What an authors' config may say beside layers, token and block, and what it is here.
FIXED = {"causal": False, "use_aux_hidden_state": True, "use_swa": False, "attention_sink_bias": False}


def read_dflash(name: str, config: dict, tensors: Tensors, target: Target) -> DFlash:
    """Reads DFlash. Raises Refusal with one sentence if it does not fit the target."""
    config, tensors = flat(config), renamed(tensors)
    authors = config.get(OWN, {})
    only(name, config, USED_HERE)
    only(name, authors, {*FIXED, "block_size", "mask_token_id", "target_layer_ids"}, OWN)
    for key, here in FIXED.items():
        if authors.get(key, here) != here:
            raise Refusal(f"The heads {name!r} set {OWN}.{key} to {authors[key]}; only {here} is known here.")
    same(name, "hidden size", config["hidden_size"], target.width, "the target")
    same(name, "vocabulary", config["vocab_size"], len(target.head), "the target")
    layers, reads = layers_of(tensors), layers_read(name, config, target.layers)
    same(
        name,
        "number of states times their width",
        tensors["fc.weight"].shape[1],
        len(reads) * target.width,
        "the target",
    )
    if "layers.0.self_attn.q_norm.weight" not in tensors:
        raise Refusal(f"The heads {name!r} lack the tensor 'layers.0.self_attn.q_norm.weight'.")
    config = config | {"head_dim": len(tensors["layers.0.self_attn.q_norm.weight"])}  # Qwen3 has a default
    head = own_head(name, config, tensors, target)
    own = Published(
        replace(layer_form(name, config, tensors, layers), window=None),
        config.get("rms_norm_eps", 1e-6),
        windows(name, config, layers),
        not config.get("sliding_window_non_causal", False),
        bool(config.get("sample_from_anchor", False)),
        head,
    )
    module = DFlash(
        target,
        config.get("block_size") or authors["block_size"],
        layers,
        reads,
        config["intermediate_size"],
        mask_token(name, config | authors, tensors, target),
        own,
    )
    embedded(module, tensors, target.width, name)
    places = named(tensors, TOP) | later_layers(tensors, range(layers), 0)
    if head is None:
        del places["lm_head.weight"]
    else:
        places["d2t"] = "d2t"
    if module.own_embedding is not None:
        tensors["own_embedding.weight"] = module.own_embedding.weight
        places["own_embedding.weight"] = "own_embedding.weight"
    fill(name, module, tensors, places)
    return module


def own_head(name: str, config: dict, tensors: Tensors, target: Target) -> int | None:
    """The size of the drafter's own vocabulary, None if it has none or the target's, which then is used;
    puts its matrix and d2t into the tensors, or takes them out.
    """
    if not tensors.keys() & {"lm_head.weight", "d2t"}:
        tensors.pop("t2d", None)
        return None
    head, offsets = vocabulary_of(name, config, tensors, target)
    theirs = target.head
    if head.shape == theirs.shape and not offsets.any() and torch.equal(head.to(theirs), theirs):
        del tensors["lm_head.weight"]
        return None
    tensors |= {"lm_head.weight": head, "d2t": offsets}
    return len(head)


def layers_read(name: str, config: dict, layers: int) -> tuple[int, ...]:
    """After how many of the target's layers the states are taken, each. Raises Refusal with one sentence for
    layers that the target lacks, or if none are named.
    """
    says(name, config, "num_target_layers", layers, "the target")
    ids = config.get(OWN, {}).get("target_layer_ids")
    counts = config.get("aux_hidden_state_layer_ids")
    reads = tuple(counts or [index + 1 for index in ids or ()])
    if not reads:
        raise Refusal(f"The heads {name!r} do not say which layers of the target they read.")
    if counts and ids and list(counts) != [index + 1 for index in ids]:
        raise Refusal(
            f"The heads {name!r} contradict themselves: aux_hidden_state_layer_ids, which counts the layers "
            f"that have run, and {OWN}.target_layer_ids name different layers."
        )
    if bad := [layer for layer in reads if not 0 <= layer < layers]:
        raise Refusal(f"The heads {name!r} read layer {bad[0]}, and the target has {layers} layers.")
    return reads


def windows(name: str, config: dict, layers: int) -> tuple[int | None, ...]:
    """For each layer, how many states before a block it sees, None for all. Raises Refusal for windows in the
    authors' format: their code leaves open whether a window moves with the entries of a block.
    """
    found = tuple(window_of(name, config, at) for at in range(layers))
    if OWN in config and any(found):
        raise Refusal(
            f"The heads {name!r} have layers with a sliding window, which are known here in the format of "
            "speculators alone."
        )
    return found
