"""Hydra heads in their authors' format (`hydra_lm_head`).

`hydra_mlp.K.N` is block N of head K, the first with `linear` and `res_connection`, the others with `linear`;
`hydra_lm_head.K` is its vocabulary matrix with bias. In Hydra++ the dropout layers in between are numbered
too, and `prefix_embeding_layer` is a model of one layer and the last norm. In the authors' code, the deeper
blocks of a head are one shared instance, which is stored once per place.
"""

import re

from decoders.heads import Target
from decoders.heads.parts.layers import LayerForm
from decoders.heads.recurrent.hydra_blocks import HydraBlocks
from decoders.models.published.config_keys import only
from decoders.models.published.eagle import LAYER
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

BLOCK = re.compile(r"hydra_mlp\.(\d+)\.(\d+)\.(linear|res_connection)\.(weight|bias)")
MATRIX = re.compile(r"hydra_lm_head\.(\d+)\.(?:1\.)?(weight|bias)")
PREFIX = "prefix_embeding_layer."  # the authors' spelling
# Counted in the tensors or of training; grounded heads show in the tensors (res_connection).
USED = {
    "dropout_rate",
    "grounded_heads",
    "hidden_size",
    "hydra_head_arch",
    "hydra_num_heads",
    "hydra_num_layers",
    "num_heads",
    "num_hidden_layers",
    "version",
    "vocab_size",
}
ARCHITECTURES = ("mlp", "prefix-mlp")
UNGROUNDED = "The heads {!r} read no drafted tokens (grounded_heads is off), and are not known here."


def read_hydra(name: str, config: dict, tensors: Tensors, target: Target) -> HydraBlocks:
    """Reads the heads. Raises Refusal with one sentence if they do not fit the target."""
    only(name, config, USED)
    if (arch := config.get("hydra_head_arch", "mlp")) not in ARCHITECTURES:
        raise Refusal(f"The heads {name!r} have the hydra_head_arch {arch!r}, which is not known here.")
    same(name, "hidden size", config.get("hidden_size", target.width), target.width, "the target")
    same(name, "vocabulary", config.get("vocab_size", len(target.head)), len(target.head), "the target")
    plain = {key.removeprefix("hydra_head."): value for key, value in tensors.items()}
    plain = {key: value for key, value in plain.items() if not key.endswith("rotary_emb.inv_freq")}
    plain.pop(f"{PREFIX}embed_tokens.weight", None)  # the layer reads states and no tokens
    matches = [match for key in plain if (match := BLOCK.fullmatch(key))]
    if not any(match[3] == "res_connection" for match in matches):
        raise Refusal(UNGROUNDED.format(name))
    depth = 1 + max(int(match[1]) for match in matches)
    order = sorted({int(match[2]) for match in matches})  # numbers of the blocks, without dropout layers
    places = {}
    for match in matches:
        head, block = int(match[1]), order.index(int(match[2]))
        part = {"res_connection": "a", "linear": "b" if block == 0 else "deeper"}[match[3]]
        at = f"{part}.{head}.{block - 1}" if part == "deeper" else f"{part}.{head}"
        places[match.string] = f"{at}.{match[4]}"
    matrices = [match for key in plain if (match := MATRIX.fullmatch(key))]
    places |= {match.string: f"matrices.{match[1]}.{match[2]}" for match in matrices}
    first = next(key for key, place in places.items() if place == "a.0.weight")
    same(name, "hidden size", plain[first].shape[0], target.width, "the target")
    rows = plain[next(key for key, place in places.items() if place == "matrices.0.weight")].shape[0]
    same(name, "vocabulary", rows, len(target.head), "the target")
    prefix = None
    if f"{PREFIX}norm.weight" in plain:
        prefix = layer_of(name, plain, target)
        places |= prefix_places()
    module = HydraBlocks(target, depth, len(order), prefix)
    fill(name, module, plain, places)
    return module


def layer_of(name: str, tensors: Tensors, target: Target) -> tuple[LayerForm, int]:
    """(form, inner width) of the prefix layer, which has the target's heads and rotary positions."""
    if f"{PREFIX}layers.1.mlp.up_proj.weight" in tensors:
        raise Refusal(f"The heads {name!r} have several prefix layers; only one is known here.")
    own = f"{PREFIX}layers.0."
    size = tensors[f"{own}self_attn.q_proj.weight"].shape[0] // target.heads
    kv_heads = tensors[f"{own}self_attn.k_proj.weight"].shape[0] // size
    return LayerForm(target.heads, kv_heads, size, target.theta), tensors[f"{own}mlp.up_proj.weight"].shape[0]


def prefix_places() -> dict[str, str]:
    """Name in the file -> name in the module, for the prefix layer."""
    known = {
        f"layers.0.{theirs}": f"prefix.{ours}" for theirs, ours in LAYER.items() if "_norm" not in theirs
    }
    known |= {
        "layers.0.post_attention_layernorm": "prefix.norm",
        "layers.0.input_layernorm": "prefix.first_norm",
        "norm": "last_norm",
    }
    return {f"{PREFIX}{theirs}.weight": f"{ours}.weight" for theirs, ours in known.items()}
