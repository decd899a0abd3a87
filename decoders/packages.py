"""Where the packages and their data lie: side by side in a checkout, in `decoding_explorer` once installed.

Nothing else builds a module's name or the path of a data file.
"""

import atexit
import importlib
import tempfile
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType

ROOM = __package__.removesuffix("decoders")  # "" in a checkout, "decoding_explorer." once installed
# The folder (or zip file) in which Python finds these packages: what a process of its own has on its path.
ROOT = Path(__file__).resolve().parents[1 + ROOM.count(".")]


def full(name: str) -> str:
    """The full name of one of our modules, such as `decoders.registry`."""
    return ROOM + name


def module(name: str) -> ModuleType:
    """One of our modules by the name that it has in a checkout. Raises ImportError."""
    return importlib.import_module(full(name))


@cache
def assets() -> Path:
    """The folder with models, examples, lessons, scripts and schemas. From a zipped install it is unpacked
    into a temporary folder, which is deleted when the process ends.
    """
    package = files(__package__)
    if isinstance(package, Path):
        return package.resolve().parent / "assets"
    unpacked = tempfile.TemporaryDirectory(prefix="decoding-explorer-assets-")
    atexit.register(unpacked.cleanup)
    folder = f"{ROOM.replace('.', '/')}assets/"
    with zipfile.ZipFile(package.root.filename) as archive:
        archive.extractall(unpacked.name, [name for name in archive.namelist() if name.startswith(folder)])
    return Path(unpacked.name, folder)
