"""The shipped models and what their files say. Fast, since it imports no torch and reads no weights."""

import json
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from decoders.models import address
from decoders.models.head_kinds import KINDS
from decoders.packages import assets
from decoders.refusal import Refusal
from decoders.roles import DRAFT_ROLES

# The configs of all shipped models. An installed package has the weights of the commonest only.
SHIPPED = assets() / "models"
FURTHER = "decoding_explorer_models"  # what the distribution with the other weights installs
TARGET, DRAFT = "llama-tiny", "llama-tiny-draft-distilled"  # the default pair
DEVICES = ("auto", "cpu", "cuda")
DEVICE_HELP = "where the models compute (default: auto, the GPU if there is one)"


def with_weights(name: str) -> Path:
    """The folder of a shipped model or shipped heads. Raises Refusal if its weights are not installed."""
    spec = find_spec(FURTHER)
    further = [Path(place, name) for place in spec.submodule_search_locations] if spec else []
    for folder in (SHIPPED / name, *further):
        if any(folder.glob("*.safetensors")):
            return folder
    raise Refusal(f"The weights of {name!r} are not installed here: pip install decoding-explorer-models.")


def is_shipped(name: str) -> bool:
    """Whether a model, or heads, of this name come with the project."""
    return name in {path.parent.name for path in SHIPPED.glob("*/config.json")}


def shipped() -> list[str]:
    """Names of the shipped causal models. Others are left out: heads need a target, encoder-decoders a
    source, and masked diffusion has no next token.
    """
    configs = {
        path.parent.name: json.loads(path.read_text("utf-8")) for path in SHIPPED.glob("*/config.json")
    }
    return sorted(name for name, config in configs.items() if kind(config) == "causal")


def kind(config: dict) -> str:
    """The kind of model in a folder with this config.json: causal, diffusion, seq2seq, the config's own
    `denoiser` for a model that fills masks in another way, or a kind of heads on another model.
    """
    if "modules" in config:
        kinds = {module["kind"] for module in config["modules"].values()}
        alone = next(iter(kinds)) if len(kinds) == 1 else ""
        return alone if alone in KINDS and KINDS[alone].alone else "heads"
    if config.get("is_encoder_decoder"):
        return "seq2seq"
    masks = "diffusion" if config.get("mask_token_id") is not None else "causal"
    return config.get("denoiser") or masks


def of_small_architectures(types: Collection[str]) -> dict[str, str]:
    """Name -> model_type of the shipped models with one of these architectures."""
    configs = {
        path.parent.name: json.loads(path.read_text("utf-8")) for path in SHIPPED.glob("*/config.json")
    }
    return {
        name: config["model_type"] for name, config in configs.items() if config.get("model_type") in types
    }


def shipped_facts() -> list[dict]:
    """For each shipped causal model, without loading it: name, parameters, held_out_loss, layers, context."""
    models = []
    for name in shipped():
        config = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))
        facts = json.loads((SHIPPED / name / "facts.json").read_text("utf-8"))
        models.append(
            {
                "name": name,
                "parameters": facts["parameters"],
                "held_out_loss": facts["held_out_loss"],
                "layers": config.get("num_hidden_layers", config.get("num_layers")),
                "context": config["max_position_embeddings"],
            }
        )
    return models


def exits(name: str) -> list[int]:
    """The layers after which a shipped model was trained to exit early, ascending; empty for any other
    model.
    """
    folder = SHIPPED / name
    config = folder / "config.json"
    if folder.name != name or not config.is_file() or kind(json.loads(config.read_text("utf-8"))) != "causal":
        return []
    return sorted(json.loads((folder / "facts.json").read_text("utf-8")).get("exits", []))


def sorted_draft(target: str) -> str | None:
    """The shipped draft of a shipped target that was trained to exit early; None if there is none."""
    for name in shipped():
        facts = json.loads((SHIPPED / name / "facts.json").read_text("utf-8"))
        if facts.get("distilled_from") == target and facts.get("exits"):
            return name
    return None


def by_role(target: str, draft: str | None) -> dict[str, str]:
    """Role -> model name; `draft` may be a comma-separated list. Raises Refusal with one sentence if there
    are too many drafts.
    """
    drafts = [name for name in address.listed(draft or "") if name]
    if len(drafts) > len(DRAFT_ROLES):
        raise Refusal(f"A lane has at most {len(DRAFT_ROLES)} draft models, not {len(drafts)}.")
    return {"target": target} | dict(zip(DRAFT_ROLES, drafts, strict=False))
