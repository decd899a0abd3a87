"""What the keys of a published config are to us: each is used, checked against the tensors, without effect on
what a head computes, or refused by name. A null counts as absent.
"""

from collections.abc import Collection
from typing import Any

from transformers import PretrainedConfig

from decoders.models.published.tensors import Tensors
from decoders.refusal import Refusal

# Notes on files, tokens and training; the count of layers and heads is that of the tensors.
NO_EFFECT = frozenset(PretrainedConfig().to_dict()) | {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "base_model_name_or_path",
    "bos_token_id",
    "dtype",
    "embed_requires_grad",
    "eos_token_id",
    "has_no_defaults_at_init",
    "initializer_range",
    "max_sequence_length",
    "model_type",
    "pad_token_id",
    "pretraining_tp",
    "speculators_config",
    "speculators_model_type",
    "speculators_version",
    "target_model_type",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}
UNKNOWN_KEY = (
    "The config of the heads {!r} sets {!r}, which is not known here, and without it they could compute "
    "something else; if it has no effect, remove it from config.json."
)


def present(value: Any) -> Any:
    """A config without its nulls, in all of its parts."""
    if not isinstance(value, dict):
        return value
    return {key: present(part) for key, part in value.items() if part is not None}


def only(name: str, config: dict, used: Collection[str], within: str = "") -> None:
    """Raises Refusal at a key that is neither used nor without effect. within: the part of the config that
    has these keys.
    """
    if left := sorted(config.keys() - NO_EFFECT - set(used)):
        raise Refusal(UNKNOWN_KEY.format(name, f"{within}.{left[0]}" if within else left[0]))


def says(name: str, config: dict, key: str, found: Any, tensor: str) -> None:
    """Raises Refusal if a key says something else than the tensors."""
    if key in config and config[key] != found:
        raise Refusal(
            f"The heads {name!r} contradict themselves: {key} is {config[key]}, and {tensor} says {found}."
        )


def biased(name: str, config: dict, key: str, tensors: Tensors, tensor: str) -> bool:
    """Whether there is a tensor of biases. Raises Refusal if the config's key says otherwise."""
    found = tensor in tensors
    if key in config and bool(config[key]) != found:
        raise Refusal(
            f"The heads {name!r} contradict themselves: {key} is {str(bool(config[key])).lower()}, and the "
            f"tensor {tensor!r} is {'there' if found else 'missing'}."
        )
    return found
