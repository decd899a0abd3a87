"""Whether two models have the same tokens, by their files alone. Imports no torch and reads no weights."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decoders.models.address import InVllm, Server
from decoders.models.catalog import DRAFT
from decoders.models.names import Hub, Source, resolve, stored


def default_draft(target: str) -> str | None:
    """The shipped draft for a target with its tokens, which the files of both say; None for any other."""
    return DRAFT if same_tokens(target, DRAFT) else None


def same_tokens(one: str, other: str) -> bool | None:
    """Whether two models have the same tokens, by their files; None where these are not at hand."""
    tokens = [tokens_in(name) for name in (one, other)]
    return None if None in tokens else tokens[0] == tokens[1]


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
        folder = folder_of_tokens(resolve(name))
        return None if folder is None else take(json.loads((folder / file).read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def folder_of_tokens(source: Source) -> Path | None:
    """The folder with a model's tokenizer; None if it is not on this machine. Raises Refusal with one
    sentence if there is no such model.
    """
    match source:
        case Server(tokenizer=of) | InVllm(model=of):
            return folder_of_tokens(resolve(of))
    whole = stored(source)
    return None if isinstance(whole, Hub) else whole.folder
