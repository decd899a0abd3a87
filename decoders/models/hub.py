"""Model files on the Hugging Face Hub: listing, sizes, and download with progress.

Downloads only safetensors weights and the files of config and tokenizer.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm.std import tqdm

from decoders.refusal import Refusal

BESIDE = (".json", ".txt", ".model", ".jinja")  # endings of files besides the weights that are downloaded
Progress = Callable[[str, int, int], None]  # (what is being done, amount done, total)


@dataclass(frozen=True)
class Listing:
    """A model on the Hub: commit, names of its files, bytes still to download."""

    commit: str
    files: tuple[str, ...]
    missing: int


def listing(identifier: str, revision: str | None = None) -> Listing:
    """Queries the Hub. Raises Refusal with one sentence if it does not answer or has no safetensors."""
    from huggingface_hub import snapshot_download

    wanted = ["*.safetensors", *("*" + ending for ending in BESIDE)]
    try:
        planned = snapshot_download(identifier, revision=revision, allow_patterns=wanted, dry_run=True)
    except Exception as error:  # the client raises a dozen types, some from its HTTP library
        raise Refusal(refusal(identifier, error)) from error
    sizes = {file.filename: file for file in planned}
    names = chosen(list(sizes))
    if not any(name.endswith(".safetensors") for name in names):
        raise Refusal(
            f"{identifier} has no model.safetensors on the Hub; only safetensors weights are loaded."
        )
    missing = sum(sizes[name].file_size or 0 for name in names if sizes[name].will_download)
    return Listing(planned[0].commit_hash, tuple(names), missing)


def chosen(names: list[str]) -> list[str]:
    """The files of a repository that loading needs: one set of weights, config and tokenizer."""
    top = [name for name in names if "/" not in name]
    whole = "model.safetensors" in top
    model = any(name.startswith("model") and name.endswith(".safetensors") for name in top)
    return [
        name
        for name in top
        if (name.endswith(BESIDE) and not (whole and name == "model.safetensors.index.json"))
        or name == "model.safetensors"
        or (not model and name == "adapter_model.safetensors")
        or (not whole and name.startswith("model-") and name.endswith(".safetensors"))
    ]


def parameters(identifier: str, commit: str) -> int:
    """The number of parameters, from the weights' headers. Raises Refusal with one sentence."""
    from huggingface_hub import HfApi

    try:
        return sum(HfApi().get_safetensors_metadata(identifier, revision=commit).parameter_count.values())
    except Exception as error:
        raise Refusal(refusal(identifier, error)) from error


def cached(identifier: str, revision: str | None = None) -> Path | None:
    """The folder of a model whose weights are all in the cache; None otherwise. Uses no network."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(identifier, "config.json", revision=revision)
        if not isinstance(config, str):
            config = try_to_load_from_cache(identifier, "adapter_config.json", revision=revision)
    except HFValidationError:
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    index = folder / "model.safetensors.index.json"
    needed = {"adapter_model.safetensors" if config.endswith("adapter_config.json") else "model.safetensors"}
    if index.exists() and not (folder / "model.safetensors").exists():
        try:
            needed = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):  # a damaged file: it is not whole
            return None
    return folder if all((folder / name).exists() for name in needed) else None


def fetch(identifier: str, revision: str | None, progress: Progress) -> Path:
    """The folder with a model's files, downloaded if needed; from the cache if the Hub cannot be reached.

    Raises InterruptedError if `progress` does, else Refusal with one sentence.
    """
    from huggingface_hub import snapshot_download

    try:
        repository = listing(identifier, revision)
    except Refusal:
        folder = cached(identifier, revision)
        if folder is None:
            raise
        return folder
    check_disk(identifier, repository.missing)
    bars = counting(lambda done: progress(f"Downloading {identifier}", done, repository.missing))
    try:
        return Path(
            snapshot_download(
                identifier, revision=revision, allow_patterns=list(repository.files), tqdm_class=bars
            )
        )
    except InterruptedError:
        raise
    except Exception as error:
        raise Refusal(refusal(identifier, error)) from error


def check_disk(identifier: str, missing: int) -> None:
    """Raises Refusal with one sentence unless the disk has room for `missing` bytes."""
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if missing > free:
        raise Refusal(
            f"{identifier} needs {missing / 1e9:.1f} GB on the disk and {free / 1e9:.1f} GB are free; "
            "free some space or choose a smaller model."
        )


def counting(report: Callable[[int], None]) -> type[tqdm]:
    """A progress bar class that draws nothing and reports the bytes received."""

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.bytes = kwargs.get("unit") == "B"
            self.got = 0
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n=1) -> None:
            self.got += n or 0
            if self.bytes:
                report(int(self.got))

    return Bar


def refusal(identifier: str, error: Exception) -> str:
    """Why the Hub did not provide a model, in one sentence."""
    from huggingface_hub import errors

    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    kinds = tuple(type(cause) for cause in causes)

    def among(*classes: Any) -> bool:
        return any(issubclass(kind, classes) for kind in kinds)

    if among(errors.HFValidationError):
        return f"{identifier!r} is not a Hub id; write owner/model, or owner/model@revision."
    if among(errors.GatedRepoError):
        return f"{identifier} asks for an agreement: accept it on its page of the Hub and run hf auth login."
    if among(errors.RevisionNotFoundError):
        return f"{identifier} has no such revision on the Hub; leave out what follows the @, or correct it."
    if among(errors.RepositoryNotFoundError):
        return f"The Hub has no model {identifier} that this app may read; check the spelling."
    if among(errors.NotASafetensorsRepoError):
        return f"{identifier} has no safetensors weights on the Hub; only safetensors are loaded."
    return (
        f"The Hub did not give {identifier} ({kinds[-1].__name__}); check the connection, or name a model "
        "that comes with the app or a folder."
    )
