"""Tensors of published heads: read from safetensors only, and loaded into a module with every name and shape
checked.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from decoders.refusal import Refusal, said_by

PICKLES = ("*.bin", "*.pt", "*.pth")
Tensors = dict[str, torch.Tensor]


def tensor_names(folder: Path) -> dict[str, Path]:
    """Tensor name -> file, from the headers of a folder's safetensors files. A file that cannot be read is
    skipped here; loading it raises.
    """
    paths = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                paths |= dict.fromkeys(file.keys(), path)
        except SafetensorError:
            continue
    return paths


def read_tensors(folder: Path, prefix: str | tuple[str, ...] = "") -> Tensors:
    """Name -> tensor, for the tensors in a folder whose names begin with `prefix`, or with one of several."""
    wanted: dict[Path, list[str]] = {}
    for name, path in tensor_names(folder).items():
        if name.startswith(prefix):
            wanted.setdefault(path, []).append(name)
    result = {}
    for path, names in wanted.items():
        with safe_open(path, framework="pt") as file:
            result |= {name: file.get_tensor(name) for name in names}
    return result


def pickles(folder: Path) -> list[Path]:
    """PyTorch pickles in a folder; only `convert` opens them."""
    return sorted(path for pattern in PICKLES for path in folder.glob(pattern))


def convert(folder: Path) -> list[Path]:
    """Writes the tensors of each pickle in a folder as safetensors beside it, with `torch.load` restricted to
    plain tensors; returns the new files. Raises Refusal with one sentence if a pickle holds anything else.
    """
    made = []
    for path in pickles(folder):
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # unpickling raises errors of many types
            raise Refusal(
                f"{str(path)!r} holds more than tensors, and is not opened: {said_by(error)}."
            ) from error
        if not isinstance(state, Mapping) or not all(isinstance(v, torch.Tensor) for v in state.values()):
            raise Refusal(f"{str(path)!r} holds no state dict of tensors.")
        copies = {str(name): value.detach().clone().contiguous() for name, value in state.items()}
        made.append(path.with_suffix(".safetensors"))
        save_file(copies, made[-1])
    return made


def fill(name: str, module: torch.nn.Module, tensors: Tensors, places: Mapping[str, str]) -> None:
    """Loads tensors into a module. places: name in the file -> name in the module. Raises Refusal with one
    sentence about a missing tensor, an unexpected one, or a wrong shape.
    """
    state, given = module.state_dict(), {}
    for source, place in places.items():
        if source not in tensors:
            raise Refusal(f"The heads {name!r} lack the tensor {source!r}.")
        value, wanted = tensors[source], tuple(state[place].shape)
        if tuple(value.shape) != wanted:
            raise Refusal(
                f"The heads {name!r} do not fit: {source} has the shape {tuple(value.shape)}, and "
                f"{wanted} is needed."
            )
        given[place] = value
    if missing := sorted(state.keys() - given.keys()):
        raise Refusal(f"The heads {name!r} do not define {missing[0]}.")
    if left := sorted(tensors.keys() - places.keys()):
        raise Refusal(f"The heads {name!r} hold {left[0]!r}, which this format does not know.")
    module.load_state_dict(given)


def same(name: str, what: str, theirs: int, ours: int, target: str) -> None:
    """Raises Refusal with one sentence unless two sizes are equal."""
    if theirs != ours:
        raise Refusal(
            f"The heads {name!r} are for another target: their {what} is {theirs:,}, that of {target} is "
            f"{ours:,}."
        )


def read_json(path: Path) -> dict:
    """A config as a dict; {} if the file is missing or not a JSON object."""
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
