"""Model names: shipped names, folders, Hub ids. Answers at once, since it imports no torch and looks at no
weights.
"""

import json
from collections.abc import Collection
from pathlib import Path

from decoders.models import address, edited_names
from decoders.trace.events import DRAFT_ROLES

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "models"
TARGET, DRAFT = "llama-tiny", "llama-tiny-draft-distilled"  # the pair that is used unless others are named
# kinds of heads that lie alone in a folder of their own, which then is of that kind
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


def shipped() -> list[str]:
    """Names of the models that come with the project and that every strategy can decode with: the causal
    ones. Heads need a target, encoder-decoders a source, and masked diffusion has no next token.
    """
    configs = {path.parent.name: json.loads(path.read_text()) for path in SHIPPED.glob("*/config.json")}
    return sorted(name for name, config in configs.items() if kind(config) == "causal")


def kind(config: dict) -> str:
    """What lies in a folder with this config.json: a causal, diffusion or seq2seq model, one that fills masks
    in a way of its own (`denoiser`), or heads on another model (heads in folders of their own have kinds of
    their own).
    """
    if "modules" in config:
        kinds = {module["kind"] for module in config["modules"].values()}
        return kinds.pop() if len(kinds) == 1 and kinds <= ALONE else "heads"
    if config.get("is_encoder_decoder"):
        return "seq2seq"
    masks = "diffusion" if config.get("mask_token_id") is not None else "causal"
    return config.get("denoiser") or masks


def of_small_architectures(types: Collection[str]) -> dict[str, str]:
    """Of the shipped models whose config.json names one of these architectures: name -> model_type."""
    configs = {path.parent.name: json.loads(path.read_text()) for path in SHIPPED.glob("*/config.json")}
    return {
        name: config["model_type"] for name, config in configs.items() if config.get("model_type") in types
    }


def shipped_facts() -> list[dict]:
    """Of each shipped causal model, without loading it: name, parameters, held_out_loss, layers, context."""
    models = []
    for name in shipped():
        config = json.loads((SHIPPED / name / "config.json").read_text())
        facts = json.loads((SHIPPED / name / "facts.json").read_text())
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
    """After how many layers a shipped model was trained to be left early, fewest first; none if it was not,
    and for any other model.
    """
    folder = SHIPPED / name
    config = folder / "config.json"
    if folder.name != name or not config.is_file() or kind(json.loads(config.read_text())) != "causal":
        return []
    return sorted(json.loads((folder / "facts.json").read_text()).get("exits", []))


def sorted_draft(target: str) -> str | None:
    """The shipped draft for a shipped target that was trained to be left early; None if none was."""
    for name in shipped():
        facts = json.loads((SHIPPED / name / "facts.json").read_text())
        if facts.get("distilled_from") == target and facts.get("exits"):
            return name
    return None


def by_role(target: str, draft: str | None) -> dict[str, str]:
    """Model name by role; `draft` may name several draft models, with commas between them. Raises ValueError
    with one sentence if they are too many.
    """
    drafts = [name for name in address.listed(draft or "") if name]
    if len(drafts) > len(DRAFT_ROLES):
        raise ValueError(f"A lane has at most {len(DRAFT_ROLES)} draft models, not {len(drafts)}.")
    return {"target": target} | dict(zip(DRAFT_ROLES, drafts, strict=False))


def folder_of(name: str | Path) -> Path | None:
    """The folder that a name means, None if it means none: names that the system cannot even look up, such as
    those of unknown people's homes, mean none.
    """
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def locate(name: str) -> tuple[str, str | None]:
    """(folder, Hub id or address, revision) for a model's name; of an edited one that of its base. Raises
    ValueError with one sentence if there is no such thing.
    """
    if address.is_address(name):
        address.check(name)
        return name, None
    if edited := edited_names.edits_of(name):
        for _, module in edited.terms:
            locate(module)
        return locate(edited.base)
    if name in {path.parent.name for path in SHIPPED.glob("*/config.json")}:
        return str(SHIPPED / name), None
    folder = folder_of(name)
    if folder is not None:
        if not (folder / "config.json").exists():
            raise ValueError(
                f"The folder {name!r} holds no config.json; name one with config, safetensors and tokenizer."
            )
        if not list(folder.glob("*.safetensors")):
            raise ValueError(
                f"The folder {name!r} holds no .safetensors weights; only safetensors are loaded."
            )
        return str(folder), None
    identifier, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or identifier.count("/") != 1:
        raise ValueError(
            f"There is no model {name[:80]!r}; use a shipped one, such as {TARGET} or {DRAFT}, "
            "a folder, or a Hub id such as owner/model."
        )
    return identifier, revision or None


def is_hub_id(name: str) -> bool:
    """Whether `name` means a model on the Hub. Raises ValueError as `locate` does."""
    return not address.is_address(name) and not Path(locate(name)[0]).is_dir()
