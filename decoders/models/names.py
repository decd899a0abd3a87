"""What a model's name means: `resolve` is the only place that tells a shipped name, a folder, a Hub id and an
address apart. Imports no torch and reads no weights.
"""

from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

from decoders.models import catalog
from decoders.models.address import InVllm, Server, served
from decoders.models.edited_names import Edits, split
from decoders.refusal import Refusal


@dataclass(frozen=True)
class Shipped:
    """A model that comes with the project, and the folder with its weights."""

    name: str
    folder: Path


@dataclass(frozen=True)
class Folder:
    """A model in a folder: the name as typed, the folder, and the file in it if that is a GGUF file."""

    name: str
    folder: Path
    gguf: str | None = None


@dataclass(frozen=True)
class Hub:
    """A model on the Hub: the name as typed, its id, and the revision after an @."""

    name: str
    id: str
    revision: str | None


Stored = Shipped | Folder | Hub  # its weights are read here


@dataclass(frozen=True)
class Edited:
    """A model that is changed once it is loaded: (weight, module) of the low-rank modules to add, then
    (edit, value) of the edits.
    """

    name: str
    base: "Stored | Edited"
    terms: "tuple[tuple[float, Stored | Edited], ...]"
    edits: Edits


Local = Stored | Edited
Source = Server | InVllm | Local


def resolve(name: str) -> Source:
    """What a model's name means. Raises Refusal with one sentence if there is no such model."""
    return served(name) or local(name)


def local(name: str) -> Local:
    """As `resolve`, for a name that is no address."""
    base, terms, edits = split(name)
    if terms or edits:
        modules = tuple((weight, local(module)) for weight, module in terms)
        return Edited(name, local(base), modules, edits)
    if catalog.is_shipped(name):
        return Shipped(name, catalog.with_weights(name))
    if (file := gguf_file(name)) is not None:
        return Folder(name, file.parent, file.name)
    if (folder := existing_folder(name)) is not None:
        if not any((folder / one).exists() for one in ("config.json", "adapter_config.json")):
            raise Refusal(
                f"The folder {name!r} holds no config.json; name one with config, safetensors and tokenizer."
            )
        if not list(folder.glob("*.safetensors")):
            raise Refusal(f"The folder {name!r} holds no .safetensors weights; only safetensors are loaded.")
        return Folder(name, folder)
    identifier, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or identifier.count("/") != 1:
        raise Refusal(
            f"There is no model {name[:80]!r}; use a shipped one, such as {catalog.TARGET} or "
            f"{catalog.DRAFT}, a folder, or a Hub id such as owner/model."
        )
    return Hub(name, identifier, revision or None)


def stored(source: Local) -> Stored:
    """The model whose files are read: of an edited one its base."""
    return stored(source.base) if isinstance(source, Edited) else source


def place(source: Stored) -> tuple[str, str | None]:
    """What transformers reads a model by: (folder, None), or (Hub id, revision)."""
    return (source.id, source.revision) if isinstance(source, Hub) else (str(source.folder), None)


def shipped_name(name: str) -> str:
    """The shipped model that a name means: itself, or the one of whose weights its folder holds a copy. The
    name itself for any other model.
    """
    try:
        source = resolve(name)
    except Refusal:  # a model that was not loaded from a folder
        return name
    if not isinstance(source, Folder):
        return name
    own = weights_in(source.folder)
    for path in sorted(catalog.SHIPPED.glob("*/config.json")):
        theirs = weights_in(path.parent)
        if own and own.keys() == theirs.keys() and all(cmp(own[at], theirs[at], shallow=False) for at in own):
            return path.parent.name
    return name


def weights_in(folder: Path) -> dict[str, Path]:
    """Name -> path of the safetensors files in a folder."""
    return {path.name: path for path in folder.glob("*.safetensors")}


def gguf_file(name: str) -> Path | None:
    """The GGUF file that a name means: itself, or the only one in a folder without other weights. Raises
    Refusal with one sentence if that holds several.
    """
    if name.endswith(".gguf") and (folder := existing_folder(Path(name).parent)) is not None:
        file = folder / Path(name).name
        return file if file.is_file() else None
    folder = existing_folder(name)
    if folder is None or any(folder.glob("*.safetensors")):
        return None
    files = sorted(folder.glob("*.gguf"))
    if len(files) > 1:
        raise Refusal(
            f"The folder {name!r} holds {len(files)} GGUF files; name one of them, such as {files[0].name!r}."
        )
    return files[0] if files else None


def existing_folder(name: str | Path) -> Path | None:
    """The folder of this name; None if there is none, or if the system cannot resolve it, such as the home of
    an unknown user.
    """
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None
