"""Tells the name of a folder with draft heads from the name of a model."""

from decoders.models.names import existing_folder


def names_heads(name: str) -> bool:
    """Whether a draft's name means a folder with draft heads, in our format or a published one, and not a
    model. Raises Refusal with one sentence if these heads cannot be read.
    """
    folder = existing_folder(name) if "/" in name or name.startswith((".", "~")) else None
    if folder is None:
        return False
    from decoders.models import published  # on demand: imports every kind of head

    return published.is_heads(folder)


def without_heads(names: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """(role -> name without heads, the folders of heads that draft for the target)."""
    heads = [name for role, name in names.items() if role != "target" and names_heads(name)]
    return {role: name for role, name in names.items() if name not in heads}, heads
