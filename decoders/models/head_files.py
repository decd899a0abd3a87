"""Files of draft heads: a folder with `config.json` and `model.safetensors`; docs/heads.md describes the
format.

`check` says whether heads fit a target.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerBase

from decoders.models import catalog
from decoders.models.catalog import kind, with_weights
from decoders.models.head_kinds import KINDS
from decoders.models.names import existing_folder
from decoders.models.rounded_change import SCALE, int8_rows
from decoders.refusal import Refusal, said_by

if TYPE_CHECKING:
    from decoders.heads import DraftModule, Target

FORMAT, VERSION = "decoding-explorer-heads", 1
KEYS = {"target", "target_weights_sha256", "tokenizer_sha256", "modules"}  # required in config.json
TAP = (
    "hidden: after the last norm, row n follows token n; states l: residual stream after l layers, no norm; "
    "a guess of depth k at row n is for token n + 1 + k"
)


def weights_sha256(folder: Path) -> str:
    """Checksum of the safetensors files in a model's folder, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def tokenizer_sha256(tokenizer: PreTrainedTokenizerBase) -> str:
    """Checksum of the map from tokens to ids."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def save(
    folder: Path,
    modules: "dict[str, DraftModule]",
    target: str,
    target_folder: Path,
    tokenizer: PreTrainedTokenizerBase,
    dtype: torch.dtype = torch.bfloat16,
    partner: tuple[str, Path] | None = None,
    eight_bits: bool = False,
) -> None:
    """Writes modules trained on the model `target`, whose weights are in `target_folder`. partner: name and
    folder of the other model, if the modules are for one pair only. eight_bits: store matrices as int8 with a
    scale per row, half as large; drafts are as good.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        "version": VERSION,
        "target": target,
        "target_weights_sha256": weights_sha256(target_folder),
        "tokenizer_sha256": tokenizer_sha256(tokenizer),
        "tap": TAP,
        "modules": {
            name: {"kind": module.kind, "settings": module.settings, "reads_after_layers": module.reads}
            for name, module in modules.items()
        },
    }
    if partner is not None:
        config["partner"] = {"name": partner[0], "weights_sha256": weights_sha256(partner[1])}
    tensors = {
        f"{name}.{key}": value.detach().to("cpu", dtype if value.is_floating_point() else None).contiguous()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    if eight_bits:
        tensors = shrunk(tensors)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")


def shrunk(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a file with each floating-point matrix as int8, and its scales under another name."""
    result = dict(tensors)
    for name, value in tensors.items():
        if value.ndim == 2 and value.is_floating_point():
            result[name], result[name + SCALE] = int8_rows(value.float())
    return result


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file, with int8 matrices expanded to float32."""
    tensors = load_file(path)
    small = [name for name, value in tensors.items() if value.dtype is torch.int8]
    return tensors | {name: tensors.pop(name + SCALE) * tensors[name].float() for name in small}


def shipped_heads() -> list[str]:
    """Names of the shipped heads that draft."""
    configs = catalog.SHIPPED.glob("*/config.json")
    return sorted(
        path.parent.name for path in configs if kind(json.loads(path.read_text("utf-8"))) == "heads"
    )


def find(name: str) -> Path:
    """The folder of heads with this shipped name or path. Raises Refusal with one sentence."""
    if "/" not in name and (catalog.SHIPPED / name).is_dir():
        return with_weights(name)
    folder = existing_folder(name)
    if folder is None:
        known = ", ".join(shipped_heads()) or "none is shipped yet"
        raise Refusal(f"There are no draft heads {name!r}; name a folder or shipped heads ({known}).")
    for file in ("config.json", "model.safetensors"):
        if not (folder / file).exists():
            raise Refusal(f"The heads {name!r} lack {file}; train or copy them again.")
    return folder


def read_config(name: str, folder: Path) -> dict:
    """The folder's config. Raises Refusal with one sentence if it does not describe heads."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError:
        config = None
    wanted = {"format": FORMAT, "version": VERSION}
    known = isinstance(config, dict) and wanted.items() <= config.items() and config.keys() >= KEYS
    if not known or not config["modules"]:
        raise Refusal(
            f"The folder {name!r} holds no draft heads of format {FORMAT} {VERSION}; train them again."
        )
    return config


def check_head_config(name: str, config: dict, target: str, weights: str, tokenizer: str) -> None:
    """Raises Refusal with one sentence unless target and tokenizer have the checksums in `config`."""
    if config["tokenizer_sha256"] != tokenizer:
        raise Refusal(
            f"The heads {name!r} were trained for {config['target']!r}, which has another tokenizer "
            f"than {target!r}; choose that target, or other heads."
        )
    if config["target_weights_sha256"] != weights:
        raise Refusal(
            f"The heads {name!r} were trained on other weights of {config['target']!r} than those of "
            f"{target!r}; choose that model, or train the heads again."
        )


def check_partner(name: str, config: dict, partner: str, weights: str) -> None:
    """Raises Refusal with one sentence unless heads for a pair belong to a pair with this model, by the
    checksum of its weights, or by its name if the heads have no checksum.
    """
    known = config.get("partner")
    trained_for = known["name"] if known else next(iter(named_partners(config)), partner)
    if (known["weights_sha256"] != weights) if known else (trained_for != partner):
        raise Refusal(
            f"The heads {name!r} were trained for a pair with {trained_for!r}, whose weights are not those "
            f"of {partner!r}; choose that pair, or train the heads again."
        )


def named_partners(config: dict) -> list[str]:
    """The other models that modules name in their settings."""
    settings = [module["settings"] for module in config["modules"].values()]
    keys = [kind.partner for kind in KINDS.values() if kind.partner]
    return [each[key] for each in settings for key in keys if key in each]


def rank_accuracy(folder: Path, part: str) -> list[list[float]] | None:
    """How often the guesses of a folder's module are right, by depth and rank: the mean over all measured
    places of all groups of prompts; None if it was not measured.
    """
    try:
        measured = json.loads((folder / "acceptance.json").read_text("utf-8"))
        groups = [group[part] for group in measured.values()]
        weighed = [torch.tensor(one["accuracy"]) * one["places"] for one in groups]
        return (sum(weighed) / sum(one["places"] for one in groups)).tolist()
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def build(name: str, config: dict, folder: Path, target: "Target") -> "dict[str, DraftModule]":
    """The modules of a folder, in evaluation mode, in the target's dtype and on its device. Raises Refusal
    with one sentence.
    """
    try:
        tensors = read_tensors(folder / "model.safetensors")
        modules = {}
        for part, module_config in config["modules"].items():
            module = KINDS[module_config["kind"]].head(target, **module_config["settings"])
            prefix = part + "."
            own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            module.load_state_dict(own)
            modules[part] = module.to(target.embed.device, target.embed.dtype).eval().requires_grad_(False)
            if (accuracy := rank_accuracy(folder, part)) is not None:
                module.rank_accuracy = accuracy
    except (AttributeError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise Refusal(f"The heads {name!r} cannot be read ({said_by(error)}); train them again.") from error
    return modules
