"""Model names: shipped names, folders, Hub ids. Fast, since it imports no torch and reads no weights."""

import json
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from decoders.models import address, edited_names
from decoders.packages import assets
from decoders.refusal import Refusal
from decoders.roles import DRAFT_ROLES

# The configs of all shipped models. An installed package has the weights of the commonest only.
SHIPPED = assets() / "models"
FURTHER = "decoding_explorer_models"  # what the distribution with the other weights installs
TARGET, DRAFT = "llama-tiny", "llama-tiny-draft-distilled"  # the default pair
# kinds of heads that have a folder to themselves, which then is of that kind
ALONE = {
    "reward",
    "acceptance",
    "adaeagle",
    "aligned",
    "autodeco",
    "filter",
    "judge",
    "leank",
    "lens",
    "m2r2",
    "outlook",
    "planner",
    "ranker",
    "streams",
}


def with_weights(name: str) -> Path:
    """The folder of a shipped model or shipped heads. Raises Refusal if its weights are not installed."""
    spec = find_spec(FURTHER)
    further = [Path(place, name) for place in spec.submodule_search_locations] if spec else []
    for folder in (SHIPPED / name, *further):
        if any(folder.glob("*.safetensors")):
            return folder
    raise Refusal(f"The weights of {name!r} are not installed here: pip install decoding-explorer-models.")


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
        return kinds.pop() if len(kinds) == 1 and kinds <= ALONE else "heads"
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


def default_draft(target: str) -> str | None:
    """The shipped draft for a target with its tokens, which the files of both say; None for any other."""
    return DRAFT if same_tokens(target, DRAFT) else None


def same_tokens(one: str, other: str) -> bool | None:
    """Whether two models have the same tokens, by their files; None where these are not at hand."""
    sizes, tokens = [scored(name) for name in (one, other)], []
    if None in sizes:
        return None
    if sizes[0] != sizes[1]:
        return False
    tokens = [tokens_in(name) for name in (one, other)]
    return None if None in tokens else tokens[0] == tokens[1]


def scored(name: str) -> int | None:
    """How many tokens a model scores, by its config.json; None where there is none at hand."""
    return _read(name, "config.json", lambda config: config["vocab_size"])


def tokens_in(name: str) -> dict[str, int] | None:
    """Token -> id of a model, by its tokenizer.json; None where there is none at hand."""
    return _read(
        name,
        "tokenizer.json",
        lambda file: (
            dict(file["model"]["vocab"]) | {one["content"]: one["id"] for one in file["added_tokens"]}
        ),
    )


def _read(name: str, file: str, take: Callable[[dict], Any]) -> Any:
    try:
        if edited := edited_names.edits_of(name):
            name = edited.base
        return take(json.loads((Path(locate(address.words_of(name))[0]) / file).read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def by_role(target: str, draft: str | None) -> dict[str, str]:
    """Role -> model name; `draft` may be a comma-separated list. Raises Refusal with one sentence if there
    are too many drafts.
    """
    drafts = [name for name in address.listed(draft or "") if name]
    if len(drafts) > len(DRAFT_ROLES):
        raise Refusal(f"A lane has at most {len(DRAFT_ROLES)} draft models, not {len(drafts)}.")
    return {"target": target} | dict(zip(DRAFT_ROLES, drafts, strict=False))


def folder_of(name: str | Path) -> Path | None:
    """The folder of this name; None if there is none, or if the system cannot resolve it, such as the home of
    an unknown user.
    """
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def locate(name: str) -> tuple[str, str | None]:
    """(folder, Hub id or address; revision) for a model's name, that of the base for an edited one. Raises
    Refusal with one sentence if there is no such model.
    """
    if address.is_address(name):
        address.check_server_address(name)
        return name, None
    if edited := edited_names.edits_of(name):
        for _, module in edited.terms:
            locate(module)
        return locate(edited.base)
    if name in {path.parent.name for path in SHIPPED.glob("*/config.json")}:
        return str(with_weights(name)), None
    folder = folder_of(name)
    if folder is not None:
        if not (folder / "config.json").exists():
            raise Refusal(
                f"The folder {name!r} holds no config.json; name one with config, safetensors and tokenizer."
            )
        if not list(folder.glob("*.safetensors")):
            raise Refusal(f"The folder {name!r} holds no .safetensors weights; only safetensors are loaded.")
        return str(folder), None
    identifier, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or identifier.count("/") != 1:
        raise Refusal(
            f"There is no model {name[:80]!r}; use a shipped one, such as {TARGET} or {DRAFT}, "
            "a folder, or a Hub id such as owner/model."
        )
    return identifier, revision or None


def is_hub_id(name: str) -> bool:
    """Whether `name` is a model on the Hub. Raises ValueError as `locate` does."""
    return not address.is_address(name) and not Path(locate(name)[0]).is_dir()
