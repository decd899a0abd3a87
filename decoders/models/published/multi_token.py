"""Multi-token-prediction layers inside a target's checkpoint, identified by the names of their tensors.

| checkpoint | layer | norms of token and state, their map | last norm |
|---|---|---|---|
| DeepSeek-V3, GLM-4.5, GLM-5 | `model.layers.L` | `enorm`, `hnorm`, `eh_proj` | `shared_head.norm` |
| MiMo | `model.mtp_layers.0` | `token_layernorm`, `hidden_layernorm`, `input_proj` | `final_layernorm` |
| Qwen3-Next, Qwen3.5, 3.6 | `mtp.layers.0` | `pre_fc_norm_embedding`, `pre_fc_norm_hidden`, `fc` | `norm` |

L is the number of the target's layers; Qwen's other names begin with `mtp.` too.
transformers ignores all of them; the layer is built with the class of the target's own layers.
"""

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from decoders.heads.feature_drafters.multi_token import MultiToken, MultiTokenForm
from decoders.heads.parts.taps import Target
from decoders.models.published.tensors import Tensors, fill, read_tensors, tensor_names

EXPERT = re.compile(r"(.*\.experts)\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight")


@dataclass(frozen=True)
class Names:
    """A family's tensor names: the prefix of all tensors, that of the decoder layer, and the others."""

    prefix: str
    layer: str
    rest: dict[str, str]  # name in the file -> name in the module
    form: MultiTokenForm


def families(layers: int) -> list[Names]:
    """All known families, for a target of this many layers."""
    own = f"model.layers.{layers}."
    served = dict(first_token_out=True)
    return [
        Names(
            own,
            own,
            {
                own + "enorm": "token_norm",
                own + "hnorm": "state_norm",
                own + "eh_proj": "join",
                own + "shared_head.norm": "last_norm",
                own + "shared_head.head": "head",
                own + "embed_tokens": "own_embedding",
            },
            MultiTokenForm(**served),
        ),
        Names(
            "model.mtp_layers.0.",
            "model.mtp_layers.0.",
            {
                "model.mtp_layers.0.token_layernorm": "token_norm",
                "model.mtp_layers.0.hidden_layernorm": "state_norm",
                "model.mtp_layers.0.input_proj": "join",
                "model.mtp_layers.0.final_layernorm": "last_norm",
            },
            MultiTokenForm(state_first=True, norm_output=True, **served),
        ),
        Names(
            "mtp.",
            "mtp.layers.0.",
            {
                "mtp.pre_fc_norm_embedding": "token_norm",
                "mtp.pre_fc_norm_hidden": "state_norm",
                "mtp.fc": "join",
                "mtp.norm": "last_norm",
            },
            MultiTokenForm(norm_output=True),
        ),
    ]


def family_of(names: Iterable[str], layers: int) -> Names | None:
    """The family of a checkpoint with tensors of these names; None if it has no such layer."""
    names = set(names)
    return next((one for one in families(layers) if f"{next(iter(one.rest))}.weight" in names), None)


def has_multi_token(folder: Path, model: torch.nn.Module) -> bool:
    """Whether the files of a model hold such a layer."""
    layers = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    return layers is not None and family_of(tensor_names(folder), layers) is not None


def read_multi_token(name: str, folder: Path, target: Target) -> MultiToken:
    """Reads the layer in a target's folder. Raises Refusal with one sentence if it does not fit the
    target.
    """
    family = family_of(tensor_names(folder), target.layers)
    tensors = merged_experts(read_tensors(folder, family.prefix))
    base, config = target.model.base_model, target.model.config.get_text_config()
    block = fresh_layer(base, config, target.layers, sparse=any(".experts." in key for key in tensors))
    matrix = tensors.get(next((k + ".weight" for k, v in family.rest.items() if v == "head"), ""))
    own_head = matrix is not None and not torch.equal(matrix.to(target.head), target.head)
    norm = type(base.norm)
    module = MultiToken(
        target,
        block,
        lambda: norm(target.width, eps=target.eps),
        base.rotary_emb,
        family.form,
        own_head,
    ).to(target.embed.dtype)
    places = {}
    for key, value in list(tensors.items()):
        stem, _, kind = key.rpartition(".")
        place = family.rest.get(stem)
        if place == "own_embedding":
            if not torch.equal(value.to(target.embed), target.embed):
                module.own_embedding = torch.nn.Embedding.from_pretrained(value.clone())
                places[key] = "own_embedding.weight"
            else:
                del tensors[key]
        elif place == "head" and not own_head:
            del tensors[key]
        elif place is not None:
            places[key] = f"{place}.{kind}"
        elif key.startswith(family.layer):
            places[key] = "block." + key.removeprefix(family.layer)
        else:
            del tensors[key]  # of a second layer: the first one drafts all depths
    fill(name, module, tensors, places)
    return module


def fresh_layer(base: torch.nn.Module, config, index: int, sparse: bool = True) -> torch.nn.Module:
    """A new layer of the target's own class, with full attention, or with an indexer of its own where the
    target's attention is sparse (DSA). sparse: whether its MLP has experts, where a config lists that.
    """
    own = copy.deepcopy(config)
    added = {
        "layer_types": "full_attention",
        "indexer_types": "full",
        "mlp_layer_types": "sparse" if sparse else "dense",
    }
    for name, kind in added.items():
        if listed := getattr(own, name, None):
            setattr(own, name, [*listed, kind])
    layer = type(base.layers[-1])(own, index)
    layer.to(base.dtype)
    return layer


def merged_experts(tensors: Tensors) -> Tensors:
    """The tensors with separate experts, as in checkpoints, stacked into the two that transformers uses:
    `gate_up_proj` [E, 2I, d] and `down_proj` [E, d, I].
    """
    result, groups = {}, {}
    for name, value in tensors.items():
        if match := EXPERT.fullmatch(name):
            groups.setdefault(match[1], {}).setdefault(match[3], {})[int(match[2])] = value
        else:
            result[name] = value
    for stem, parts in groups.items():
        gate, up, down = (
            torch.stack([parts[kind][at] for at in sorted(parts[kind])])
            for kind in ("gate_proj", "up_proj", "down_proj")
        )
        result |= {f"{stem}.gate_up_proj": torch.cat([gate, up], 1), f"{stem}.down_proj": down}
    return result
