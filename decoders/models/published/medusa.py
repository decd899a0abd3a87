"""Medusa heads in the formats of their authors and of vLLM.

The authors' `medusa_lm_head` has `K.B.linear` for block B of head K and `K.N` for its vocabulary matrix after
N blocks; vLLM's has `blocks.K.layers.B` and `lm_heads.K` (or one shared `lm_head`), perhaps over the part of
the vocabulary in `token_map`.
"""

import re

from decoders.heads.parts.taps import Target
from decoders.heads.path_independent.medusa_blocks import MedusaBlocks
from decoders.models.published.config_keys import only
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

AUTHORS = re.compile(r"(?:medusa_head\.)?(\d+)\.(\d+)\.(?:linear\.)?(weight|bias)")
VLLM = re.compile(r"(?:medusa_heads\.)?blocks\.(\d+)\.layers\.(\d+)\.(weight|bias)")
# Heads and blocks are counted in the tensors: the authors' config for Vicuna 7B says 2 heads of its 5. The
# others are of the whole model that some configs describe, or of vLLM's own settings.
USED = {
    "hidden_size",
    "max_paths",
    "max_seq_len",
    "medusa_fc_bias",
    "medusa_num_heads",
    "medusa_num_layers",
    "num_heads",
    "num_hidden_layers",
    "num_lookahead_tokens",
    "original_lm_head",
    "topk",
    "truncated_vocab_size",
    "version",
    "vocab_size",
}


def read_medusa(name: str, config: dict, tensors: Tensors, target: Target) -> MedusaBlocks:
    """Reads the heads. Raises Refusal with one sentence if they do not fit the target."""
    only(name, config, USED)
    same(name, "hidden size", config.get("hidden_size", target.width), target.width, "the target")
    same(name, "vocabulary", config.get("vocab_size", len(target.head)), len(target.head), "the target")
    plain = {key.removeprefix("medusa_heads."): value for key, value in tensors.items()}
    kept = plain.pop("token_map", None)
    vllm = any(VLLM.fullmatch(key) for key in plain)
    pattern = VLLM if vllm else AUTHORS
    matches = [match for key in plain if (match := pattern.fullmatch(key))]
    if not matches:
        raise Refusal(f"The heads {name!r} hold no tensors of Medusa heads.")
    depth = 1 + max(int(match[1]) for match in matches)
    blocks = 1 + max(int(match[2]) for match in matches) - (0 if vllm else 1)
    places = {}
    for match in matches:
        head, block = int(match[1]), int(match[2])
        at = f"matrices.{head}" if not vllm and block == blocks else f"blocks.{head}.{block}"
        places[match.string] = f"{at}.{match[3]}"
    shared = vllm and "lm_head.weight" in plain
    if vllm:
        matrix = "lm_head.weight" if shared else "lm_heads.{}.weight"
        places |= {matrix.format(k): f"matrices.{0 if shared else k}.weight" for k in range(depth)}
    first = next(key for key, place in places.items() if place == "blocks.0.0.weight")
    same(name, "hidden size", plain[first].shape[1], target.width, "the target")
    rows = plain[next(key for key, place in places.items() if place == "matrices.0.weight")].shape[0]
    if kept is None:
        same(name, "vocabulary", rows, len(target.head), "the target")
    elif rows > len(kept):  # full matrices, from which the map selects rows
        for key, place in places.items():
            if place.startswith("matrices"):
                plain[key] = plain[key][kept]
        rows = len(kept)
    bias = any(place.startswith("blocks") and place.endswith("bias") for place in places.values())
    module = MedusaBlocks(target, depth, blocks, rows, bias, shared)
    if kept is not None:
        module.kept.copy_(kept)
    plain["kept"], places["kept"] = module.kept, "kept"
    fill(name, module, plain, places)
    return module
