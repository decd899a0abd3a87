"""Recognises the published format of heads in a folder, and reads them for a target.

The format follows from tensor names and config, not from the folder's name.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from decoders.heads import DraftModule, Target
from decoders.models.published.autodeco import HEADS, read_autodeco
from decoders.models.published.config_keys import present
from decoders.models.published.dflash import read_dflash
from decoders.models.published.eagle import read_eagle, read_eagle3
from decoders.models.published.gemma4_assistant import TYPES, read_gemma4_assistant
from decoders.models.published.hydra import BLOCK, read_hydra
from decoders.models.published.medusa import AUTHORS, VLLM, read_medusa
from decoders.models.published.mlp_speculator import read_mlp_speculator
from decoders.models.published.peagle import read_peagle
from decoders.models.published.speculators_mtp import read_speculators_mtp
from decoders.models.published.tensors import pickles, read_json, read_tensors, tensor_names
from decoders.refusal import Refusal

READERS = {
    "eagle": read_eagle,
    "eagle3": read_eagle3,
    "peagle": read_peagle,
    "dflash": read_dflash,
    "mtp": read_speculators_mtp,
    "medusa": read_medusa,
    "hydra": read_hydra,
    "mlp_speculator": read_mlp_speculator,
    "autodeco": read_autodeco,
    "gemma4_assistant": read_gemma4_assistant,
}
# The name under which strategies look for the head, where it is not the format's.
SERVES = {"mtp": "eagle", "gemma4_assistant": "eagle"}
CONVERT = (
    "The heads {0!r} are PyTorch pickles, which are not opened; run this once: "
    "python -m explorer convert-heads {0}"
)
# Names of draft formats, and those of them that are read here; other names are those of models, whose class
# the authors of EAGLE, Medusa and Hydra write into their configs.
DRAFT_FORMAT = re.compile(r"eagle|draft|specul|dflash|dspark|domino|mtp|nextn|medusa|hydra", re.IGNORECASE)
READ = {
    "eagle",
    "eagle3",
    "eaglemodel",
    "eaglespeculator",
    "eagle3model",
    "eagle3speculator",
    "dflash",
    "dflashdraftmodel",
    "dflashspeculator",
    "peagle",
    "peagledraftmodel",
    "peaglespeculator",
    "mtp",
    "mtpdraftmodel",
    "eaglellamaforcausallm",
    "eagle3llamaforcausallm",
    "llamaforcausallmeagle",
    "llamaforcausallmeagle3",
    "hydra",
    "hydramodel",
    "medusa",
    "medusamodel",
    "mlpspeculator",
    "mlpspeculatorpretrainedmodel",
}
UNKNOWN = (
    "The heads {!r} have the format {!r}, which is not known here; known are EAGLE 1 to 3, P-EAGLE, DFlash, "
    "Medusa, Hydra, the MLP speculator, AutoDeco, Gemma 4's assistants and the layers inside target "
    "checkpoints."
)
# What is missing for other kinds of the library speculators, and for drafters that are named without weights.
MISSING = {
    "dspark": "The heads {!r} are DSpark's: DFlash with a Markov head, which lets a guess depend on the one "
    "before it, and a head of confidence; these two are not known here.",
    "mlp": "The heads {!r} have the kind 'mlp' of speculators, which was only ever a config: no forward was "
    "published for it; MLP speculators of IBM and vLLM (emb, proj, ln, head) are read.",
    "ngram": "The folder {!r} names n-gram lookup, which has no weights: choose the strategy prompt_lookup.",
    "suffix": "The folder {!r} names drafts from suffixes, which have no weights: choose the strategy "
    "suffix_decoding.",
}
# Formats that have EAGLE's tensors among theirs: the keys and classes of a config that tell them apart.
NAMED_FORMATS = {
    "peagle": {"peagle", "pard_token", "ptd_token_id", "PEagleDraftModel", "PEagleSpeculator"},
    "dflash": {"dflash", "dflash_config", "DFlashDraftModel", "DFlashSpeculator"},
}


def find_format(folder: Path) -> str | None:
    """The format of published heads in a folder, a key of READERS; None if there are none. Raises Refusal
    with one sentence if they cannot be read.
    """
    config = present(read_json(folder / "config.json"))
    if "modules" in config:
        return None  # our own format
    if config.get("model_type") in TYPES:
        return "gemma4_assistant"
    if config.get("speculators_model_type") == "independent":
        return None  # an ordinary model that drafts
    if missing := next((MISSING[name] for name in kinds(config) if name in MISSING), None):
        raise Refusal(missing.format(str(folder)))
    if (foreign := declared(config)) is not None:
        raise Refusal(UNKNOWN.format(str(folder), foreign))
    names = tensor_names(folder)
    # PARD's drafts, which are whole models, name a pard_token too
    if any(name.removeprefix("model.") == "fc.weight" for name in names) and (kind := named_format(config)):
        return kind
    if kind := by_names(names):
        return kind
    model_type = config.get("speculators_model_type") or config.get("model_type")
    if model_type in READERS:
        if pickles(folder):
            raise Refusal(CONVERT.format(str(folder)))
        raise Refusal(UNKNOWN.format(str(folder), model_type))
    if pickles(folder) and not list(folder.glob("*.safetensors")):
        raise Refusal(CONVERT.format(str(folder)))
    return None


def kinds(config: dict) -> list[str]:
    """The kinds that a config of speculators names."""
    part = config.get("speculators_config")
    algorithm = part.get("algorithm") if isinstance(part, dict) else None
    return [str(name).lower() for name in (config.get("speculators_model_type"), algorithm) if name]


def named_format(config: dict) -> str | None:
    """The format that a config names, of those in NAMED_FORMATS."""
    classes = config.get("architectures")
    words = {*kinds(config), *config, *(classes if isinstance(classes, list) else ())}
    return next((kind for kind, known in NAMED_FORMATS.items() if words & known), None)


def declared(config: dict) -> str | None:
    """The draft format that a config declares and that is not read here; None if there is none. Tensors of
    such formats can have the same names as EAGLE's.
    """
    speculators, classes = config.get("speculators_config"), config.get("architectures")
    names = [config.get("speculators_model_type")]
    names += [speculators.get("algorithm")] if isinstance(speculators, dict) else []
    names += classes if isinstance(classes, list) else []
    for name in names:
        plain = re.sub(r"[^a-z0-9]", "", str(name).lower())
        if DRAFT_FORMAT.search(str(name)) and plain not in READ:
            return str(name)
    return "dspark_config" if "dspark_config" in config else None


def by_names(names: Iterable[str]) -> str | None:
    """The format with tensors of these names; None for those of a whole model."""
    plain = {name.removeprefix("model.").replace("midlayer.", "layers.0.") for name in names}
    if "mtp_layers.0.input_proj.weight" in names:
        return "mtp"
    if "fusion_fc.weight" in plain and "transformer.self_attn.q_proj.weight" in plain:
        return "eagle"
    if all(f"{head}mlp.0.weight" in plain for head in HEADS):
        return "autodeco"
    if "fc.weight" in plain and "layers.0.self_attn.q_proj.weight" in plain:
        if "hidden_norm.weight" in plain:
            return "dflash"
        if "mask_hidden" in plain:
            return "peagle"
        return "eagle3" if "layers.0.hidden_norm.weight" in plain else "eagle"
    if any(AUTHORS.fullmatch(name) or VLLM.fullmatch(name) for name in plain):
        return "medusa"
    if any(BLOCK.fullmatch(name.removeprefix("hydra_head.")) for name in plain):
        return "hydra"
    if {"emb.0.weight", "proj.0.weight", "ln.0.weight"} <= {n.removeprefix("speculator.") for n in plain}:
        return "mlp_speculator"
    return None


def read_heads(name: str, folder: Path, target: Target) -> dict[str, DraftModule]:
    """Name -> head of a folder, under the names that strategies use, in evaluation mode, in the target's
    dtype and on its device. Raises Refusal with one sentence if they do not fit the target.
    """
    kind = find_format(folder)
    if kind is None:
        raise Refusal(f"The folder {name!r} holds no draft heads of a format that is known here.")
    try:
        tensors = read_tensors(folder, HEADS if kind == "autodeco" else "")
        module = READERS[kind](name, present(read_json(folder / "config.json")), tensors, target)
    except KeyError as error:
        raise Refusal(
            f"The heads {name!r} do not specify {error.args[0]}, so they cannot be read."
        ) from error
    return {SERVES.get(kind, kind): settled(module, target)}


def settled(module: DraftModule, target: Target) -> DraftModule:
    """A module in evaluation mode, without gradients, in the target's dtype and on its device."""
    return module.to(target.embed.device, target.embed.dtype).eval().requires_grad_(False)


def is_heads(folder: Path) -> bool:
    """Whether a folder holds draft heads, in our format or a published one, and not a model."""
    return "modules" in read_json(folder / "config.json") or find_format(folder) is not None
