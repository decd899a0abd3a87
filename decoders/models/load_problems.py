"""Why the files of a model could not be loaded: one sentence that names the file, for command line and page.

What transformers and safetensors raise about a damaged folder names neither the file nor a way out, so the
files are looked at once more, in the order in which loading reads them.
"""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from decoders.models.named_heads import names_heads
from decoders.refusal import said_by

INDEX = "model.safetensors.index.json"
WORDS = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)
AGAIN = "copy or download it again"


def load_failure(name: str, where: str | Path, error: Exception) -> str:
    """Why the model `name` in the folder `where` (or the Hub id) could not be loaded, after `error`."""
    folder = Path(where)
    found = of_folder(folder) if folder.is_dir() else None
    return failed(name, found or of_code(error) or quoted(error))


def failed(name: str, why: str) -> str:
    """The sentence about a model that could not be loaded."""
    return f"The model {name!r} could not be loaded: {why}"


def of_folder(folder: Path) -> str | None:
    """The first file of a folder that is missing or damaged, and what to do about it; None if all can be
    read.
    """
    for path in (folder / "config.json", *sorted(folder.glob("*.json"))):
        if problem := of_json(path):
            return problem
    if problem := of_heads(folder):
        return problem
    if (folder / INDEX).is_file() and not (folder / "model.safetensors").is_file():
        for shard in sorted(
            set(json.loads((folder / INDEX).read_text("utf-8")).get("weight_map", {}).values())
        ):
            if not (folder / shard).is_file():
                return f"the file {shard} is missing, which {INDEX} names; {AGAIN}."
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt"):
                pass
        except (SafetensorError, OSError):
            return f"the file {path.name} is damaged or incomplete ({path.stat().st_size:,} bytes); {AGAIN}."
    if not any((folder / one).is_file() for one in WORDS):
        return "its folder holds no tokenizer; put its tokenizer.json beside config.json."
    return of_words(folder / "tokenizer.json")


def of_json(path: Path) -> str | None:
    """Why a file cannot be read as a JSON object; None if it can."""
    try:
        readable = isinstance(json.loads(path.read_text("utf-8")), dict)
    except (OSError, ValueError):
        readable = False
    return None if readable else f"the file {path.name} is not a JSON object; {AGAIN}."


def of_words(path: Path) -> str | None:
    """Why a tokenizer.json cannot be used; None if it can, or if there is none."""
    from tokenizers import Tokenizer

    if not path.is_file():
        return None
    try:
        Tokenizer.from_file(str(path))
    except Exception:  # of tokenizers, which raises Exception itself
        return f"the file {path.name} holds no tokenizer that can be read; {AGAIN}."
    return None


def of_heads(folder: Path) -> str | None:
    """The sentence about a folder that holds draft heads and no model."""
    if not names_heads(str(folder)):
        return None
    return "it holds draft heads and no model; name it as the draft of the model that they were trained for."


def of_code(error: Exception) -> str | None:
    """The sentence about a model that brings Python code of its own, which is never run."""
    if "trust_remote_code" not in str(error):
        return None
    return (
        "it needs Python code of its own, which is not run here; choose one that transformers itself knows."
    )


def quoted(error: Exception) -> str:
    """What another library says, with the type of its error."""
    return f"{type(error).__name__}: {said_by(error)}."
