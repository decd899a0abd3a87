"""Tells draft heads from draft models by their names, and refuses those that a run would not use."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from decoders.models import catalog
from decoders.models.names import existing_folder
from decoders.refusal import Refusal


def names_heads(name: str) -> bool:
    """Whether a draft's name means draft heads, shipped ones or a folder in our format or a published one,
    and not a model. Raises Refusal with one sentence if these heads cannot be read.
    """
    if catalog.is_shipped(name):
        return "modules" in json.loads((catalog.SHIPPED / name / "config.json").read_text("utf-8"))
    folder = existing_folder(name)
    if folder is None:
        return False
    from decoders.models import published  # on demand: imports every kind of head

    return published.is_heads(folder)


def without_heads(names: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """(role -> name without heads, the folders of heads that draft for the target)."""
    heads = [name for role, name in names.items() if role != "target" and names_heads(name)]
    return {role: name for role, name in names.items() if role == "target" or name not in heads}, heads


def check_drafts_used(names: Mapping[str, str], roles: Collection[str]) -> None:
    """Raises Refusal with one sentence about a draft model (role -> name) that no strategy of a run uses."""
    for role, name in names.items():
        if role != "target" and role not in roles:
            raise Refusal(
                f"No strategy of this run uses the {role} {name!r}; leave it out, or choose a strategy that "
                "drafts with a model, such as speculative."
            )


def check_heads_used(models: Mapping[str, Any]) -> None:
    """Raises Refusal with one sentence about heads that were added to models (role -> model) and that no lane
    has asked for.
    """
    for model in models.values():
        for name, kinds in model.own_heads.items():
            if model.heads.asked.isdisjoint(kinds):
                raise Refusal(
                    f"No strategy of this run uses the heads {name!r} ({', '.join(kinds)}); leave them out, "
                    "or choose a strategy that does."
                )
