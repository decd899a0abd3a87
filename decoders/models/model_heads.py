"""Loads trained heads and checks that they fit their models. Knows files and models, no strategies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from decoders.heads import DraftModule, Target
from decoders.models import head_files, hub, published
from decoders.models.catalog import is_hub_id, kind, locate
from decoders.refusal import Refusal


def load_heads(name: str, target: Any) -> dict[str, DraftModule]:
    """The draft modules of shipped heads or of a folder, trained for exactly this target; see docs/heads.md.

    Raises Refusal with one sentence if a file is missing or they were trained on another target.
    """
    folder = head_files.find(name)
    return fitting_heads(name, folder, head_files.read_config(name, folder), target)


def fitting_heads(name: str, folder: Path, config: dict, target: Any) -> dict[str, DraftModule]:
    """The modules of a folder with this config. Raises Refusal with one sentence unless they are for
    exactly this target.
    """
    weights = head_files.weights_sha256(folder_of(target.name))
    head_files.check_head_config(
        name, config, target.name, weights, head_files.tokenizer_sha256(target.tokenizer)
    )
    return head_files.build(name, config, folder, Target.of(target.model))


def add_heads(models: dict[str, Any], names: Sequence[str]) -> None:
    """Attaches the heads of these folders to loaded models (role -> model), in place of the shipped ones.

    Raises Refusal with one sentence for heads that were not trained for exactly these models.
    """
    for name in names:
        if (published_folder := Path(name).expanduser()).is_dir() and published.find_format(published_folder):
            model = models["target"]
            heads = published.read_heads(name, published_folder, Target.of(model.model))
            if "autodeco" in heads:  # no draft head, so it has a place of its own
                model.autodeco = heads.pop("autodeco")
            model.heads = model.heads | heads
            model.own_heads += [name] if name not in model.own_heads else []
            continue
        folder = head_files.find(name)
        config = head_files.read_config(name, folder)
        what = kind(config)
        role, other = ("draft", "target") if what == "acceptance" else ("target", "draft")
        for needed in (role, other) if what in head_files.PARTNER_SETTINGS else (role,):
            if needed not in models:
                raise Refusal(f"The heads {name!r} ({what}) need a {needed} model, and none is loaded.")
        if what in head_files.PARTNER_SETTINGS:
            partner = models[other].name
            head_files.check_partner(name, config, partner, head_files.weights_sha256(folder_of(partner)))
            for module in config["modules"].values():  # it may have had another name in training
                module["settings"][head_files.PARTNER_SETTINGS[what]] = partner
        model = models[role]
        modules = fitting_heads(name, folder, config, model)
        if what == "heads":
            model.heads = model.heads | modules
        else:
            setattr(model, what, next(iter(modules.values())))
        if name not in model.own_heads:
            model.own_heads.append(name)


def heads_inside(name: str, model: torch.nn.Module) -> dict[str, DraftModule]:
    """The multi-token-prediction layer in a model's own files; {} if there is none. It serves the same
    strategies as EAGLE's layer. Raises Refusal with one sentence if its tensors do not match their names.
    """
    try:
        folder = folder_of(name)
    except Refusal:  # a model that was not loaded from a folder
        return {}
    if not folder.is_dir() or not published.has_multi_token(folder, model):
        return {}
    target = Target.of(model)
    return {"eagle": published.settled(published.read_multi_token(name, folder, target), target)}


def folder_of(name: str) -> Path:
    """The folder of a loaded model's files. Raises Refusal with one sentence."""
    where, revision = locate(name)
    folder = hub.cached(where, revision) if is_hub_id(name) else Path(where)
    if folder is None:
        raise Refusal(f"The files of {name!r} are no longer on this disk; load the model again.")
    return folder
