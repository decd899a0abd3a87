"""Finds heads on this disk, checks that they fit their models, and attaches them."""

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from decoders.heads import DraftModule, Target
from decoders.models import catalog, head_files, hub, published
from decoders.models.address import InVllm, Server
from decoders.models.head_kinds import KINDS
from decoders.models.names import Hub, existing_folder, resolve, shipped_name, stored
from decoders.refusal import Refusal

Read = Callable[[], dict[str, nn.Module]]


class Heads(MutableMapping[str, nn.Module]):
    """The heads of a model by kind, see head_kinds.py. A folder is read when one of its kinds is first asked
    for, which raises Refusal with one sentence if it does not fit the model.
    """

    def __init__(self, unread: Mapping[str, Read] | None = None):
        self._unread, self._known = dict(unread or {}), dict[str, nn.Module]()
        self.asked: set[str] = set()  # the kinds that were looked up

    def __getitem__(self, kind: str) -> nn.Module:
        self.asked.add(kind)
        if kind not in self._known:
            self._known = self._unread[kind]() | self._known
        return self._known[kind]

    def __setitem__(self, kind: str, head: nn.Module) -> None:
        self._known[kind] = head

    def __delitem__(self, kind: str) -> None:
        known = self._known.pop(kind, None)
        if self._unread.pop(kind, None) is None and known is None:
            raise KeyError(kind)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._unread, **self._known})

    def __len__(self) -> int:
        return len({**self._unread, **self._known})


@dataclass(frozen=True)
class OwnFormat:
    """A folder of heads in our format, docs/heads.md."""

    name: str
    folder: Path
    config: dict

    @property
    def kind(self) -> str:
        """The kind of its one head if that has a folder to itself, else "heads"."""
        return catalog.kind(self.config)

    @property
    def role(self) -> str:
        """The role of the model to which they are attached."""
        return KINDS[self.kind].role if self.kind in KINDS else "target"

    def fits(self, models: Mapping[str, Any]) -> None:
        """Raises Refusal with one sentence unless a model that it needs is there and of its pair."""
        setting = KINDS[self.kind].partner if self.kind in KINDS else None
        other = "draft" if self.role == "target" else "target"
        for needed in (self.role, other) if setting else (self.role,):
            if needed not in models:
                raise Refusal(
                    f"The heads {self.name!r} ({self.kind}) need a {needed} model, and none is loaded."
                )
        if setting:
            partner = models[other].name
            weights = head_files.weights_sha256(folder_of(partner))
            head_files.check_partner(self.name, self.config, partner, weights)
            for module in self.config["modules"].values():  # it may have had another name in training
                module["settings"][setting] = partner

    def read(self, model: Any) -> dict[str, nn.Module]:
        """Its modules for a model. Raises Refusal with one sentence unless they are for exactly this one."""
        weights = head_files.weights_sha256(folder_of(model.name))
        head_files.check_head_config(
            self.name, self.config, model.name, weights, head_files.tokenizer_sha256(model.tokenizer)
        )
        return head_files.build(self.name, self.config, self.folder, Target.of(model.model))

    def by_kind(self, model: Any) -> dict[str, nn.Module]:
        """As `read`, under the names that strategies use."""
        modules = self.read(model)
        return {self.kind: next(iter(modules.values()))} if self.kind in KINDS else modules


@dataclass(frozen=True)
class Published:
    """A folder of heads in their authors' format."""

    name: str
    folder: Path
    role = "target"

    def fits(self, models: Mapping[str, Any]) -> None:
        """Raises Refusal with one sentence if the target's weights are on a server. Whether tensors fit it is
        checked when they are read.
        """
        if models[self.role].model is None:
            folder_of(models[self.role].name)

    def by_kind(self, model: Any) -> dict[str, nn.Module]:
        """Its one head. Raises Refusal with one sentence unless it fits the model."""
        return published.read_heads(self.name, self.folder, Target.of(model.model))


def find(name: str) -> OwnFormat | Published:
    """The heads of this shipped name or folder. Raises Refusal with one sentence."""
    folder = existing_folder(name)
    if folder is not None and published.find_format(folder):
        return Published(name, folder)
    return in_own_format(name)


def in_own_format(name: str) -> OwnFormat:
    """As `find`, of heads in our format alone."""
    folder = head_files.find(name)
    return OwnFormat(name, folder, head_files.read_config(name, folder))


def load_heads(name: str, target: Any) -> dict[str, DraftModule]:
    """The draft modules of shipped heads or of a folder, trained for exactly this target; see docs/heads.md.

    Raises Refusal with one sentence if a file is missing or they were trained on another target.
    """
    return in_own_format(name).read(target)


def add_heads(models: dict[str, Any], names: Sequence[str]) -> None:
    """Attaches the heads of these folders to loaded models (role -> model), in place of the shipped ones.

    Raises Refusal with one sentence for heads that were not trained for exactly these models.
    """
    for name in names:
        heads = find(name)
        heads.fits(models)
        model = models[heads.role]
        added = heads.by_kind(model)
        model.heads.update(added)
        model.own_heads[name] = tuple(added)


def shipped_for(model: Any) -> Heads:
    """The heads that are shipped for exactly this model, by its name or by its weights; if none of them
    drafts, the multi-token layer in the model's own files too.
    """
    unread: dict[str, Read] = {}
    names = {model.name, shipped_name(model.name)}
    for path in sorted(catalog.SHIPPED.glob("*/config.json")):
        config = json.loads(path.read_text("utf-8"))
        if "modules" in config and config["target"] in names:
            kind, name = catalog.kind(config), path.parent.name
            kinds = [kind] if kind in KINDS else config["modules"]
            unread |= dict.fromkeys(kinds, lambda name=name: in_own_format(name).by_kind(model))
    drafts = any(not KINDS[kind].alone for kind in unread if kind in KINDS)
    return Heads(unread if drafts else heads_inside(model.name, model.model) | unread)


def heads_inside(name: str, model: torch.nn.Module) -> dict[str, Read]:
    """The multi-token-prediction layer in a model's own files; {} if there is none. It serves the same
    strategies as EAGLE's layer. To read it raises Refusal with one sentence if its tensors do not match their
    names.
    """
    try:
        folder = folder_of(name)
    except Refusal:  # a model that was not loaded from a folder
        return {}
    return (
        {"eagle": partial(layer_inside, name, folder, model)}
        if published.has_multi_token(folder, model)
        else {}
    )


def layer_inside(name: str, folder: Path, model: torch.nn.Module) -> dict[str, nn.Module]:
    """That layer, read."""
    target = Target.of(model)
    return {"eagle": published.settled(published.read_multi_token(name, folder, target), target)}


def folder_of(name: str) -> Path:
    """The folder of a loaded model's files. Raises Refusal with one sentence."""
    source = resolve(name)
    if isinstance(source, Server | InVllm):
        raise Refusal(
            f"The weights of {name!r} are on its server, not here; choose a model without a server."
        )
    source = stored(source)
    folder = hub.cached(source.id, source.revision) if isinstance(source, Hub) else source.folder
    if folder is None:
        raise Refusal(f"The files of {name!r} are no longer on this disk; load the model again.")
    return folder
