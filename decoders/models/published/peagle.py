"""P-EAGLE in the formats of its authors and of the library speculators: EAGLE-3's tensors, ordinary Llama
layers after the first one, and `mask_hidden`, which stands for the target's states at a token that is not yet
known. The config names the token that stands for an unknown one: `pard_token` or `ptd_token_id` in files for
vLLM, `mask_token_id` in those of speculators.
"""

from functools import partial

from decoders.heads import PEagle, Target
from decoders.models.published.config_keys import only
from decoders.models.published.eagle import USED_3, flat, fused, later_layers, layers_of, renamed
from decoders.models.published.tensors import Tensors
from decoders.refusal import Refusal

DEPTH = 8  # where a config does not say how many tokens are drafted: as in speculators
MASK = ("mask_token_id", "pard_token", "ptd_token_id")


def read_peagle(name: str, config: dict, tensors: Tensors, target: Target) -> PEagle:
    """Reads P-EAGLE. Raises Refusal with one sentence if it does not fit the target."""
    depth = drafted_by_default(config) or DEPTH
    # its forward never reads its own output, to which alone this norm would make a difference
    config, tensors = flat(config) | {"norm_output": False}, renamed(tensors)
    only(name, config, USED_3 | set(MASK))
    layers, token = layers_of(tensors), mask_token(name, config, tensors, target)
    if "mask_hidden" not in tensors:
        raise Refusal(f"The heads {name!r} lack the tensor 'mask_hidden'.")
    tensors["mask_hidden"] = tensors["mask_hidden"].flatten()
    make = partial(PEagle, depth=depth, layers=layers, mask_token=token)
    more = later_layers(tensors, range(1, layers), 0) | {"mask_hidden": "mask_hidden"}
    return fused(name, config, tensors, target, make, layers, more)


def drafted_by_default(config: dict) -> int | None:
    """How many tokens the default method of a speculators config drafts; None if there is no such part."""
    methods = config.get("speculators_config", {}).get("proposal_methods") or [{}]
    return methods[0].get("speculative_tokens")


def mask_token(name: str, config: dict, tensors: Tensors, target: Target) -> int:
    """The id that stands for an unknown token. Raises Refusal with one sentence if the config names none, or
    one without an embedding.
    """
    token = next((config[key] for key in MASK if key in config), None)
    if token is None:
        raise Refusal(
            f"The heads {name!r} do not say which token stands for an unknown one (mask_token_id), so they "
            "cannot be read."
        )
    rows = len(tensors.get("embed_tokens.weight", target.embed))
    if not 0 <= token < rows:
        raise Refusal(
            f"The heads {name!r} name {token} as the token for an unknown one, and there are embeddings of "
            f"{rows:,} tokens."
        )
    return token
