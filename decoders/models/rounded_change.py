"""Models that are shipped as the change of another shipped model, rounded to eight bits per number, so that
two models of one family take little more room than one and a half. After loading they are plain causal LMs.

A folder holds the files of a plain model, except that `change.safetensors` and `change.json` stand in for
`model.safetensors`: of each matrix `W` of the merged model the int8 numbers q and a scale s per row, with
`W = base + s q` (rows that the base lacks begin at zero, and so do matrices that it lacks or has in another
shape), and whole vectors. A matrix that is the base's own is left out. A tokenizer that is also that of
another model lies in that model's folder alone, which `change.json` names. Knows files and weights.
"""

import json
import math
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_utils import PreTrainedModel

CONFIG, WEIGHTS, SCALE = "change.json", "change.safetensors", ".scale"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
LARGEST = 127  # of an int8


def is_change(folder: Path) -> bool:
    """Whether a folder holds a rounded change of another model."""
    return (folder / CONFIG).exists()


def base_of(folder: Path) -> Path:
    """The folder of the model that it changes: it lies beside it."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8"))["base"]


def words_of(folder: Path) -> Path:
    """The folder that holds its tokenizer: a model's beside it, or itself."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8")).get("tokenizer", folder.name)


def rounded(change: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers q [R, C] as int8 and scales s [R, 1] in float32, with s q nearest to the change [R, C]."""
    scale = change.abs().amax(1, keepdim=True).clamp(min=1e-12) / LARGEST
    return (change / scale).round().to(torch.int8), scale


def write(folder: Path, base: str, words: str | None = None) -> None:
    """Replaces the whole weights in a folder by their change of the shipped model `base` beside it, and its
    tokenizer, if that is the same, by that of the model `words` beside it (the base).
    """
    weights, old = load_file(folder / "model.safetensors"), base_weights(folder.parent / base)
    tensors = {}
    for name, value in weights.items():
        if value.ndim != 2:
            tensors[name] = value
        elif name not in old or not torch.equal(value, old[name]):
            tensors[name], tensors[name + SCALE] = rounded(value.float() - begun(old.get(name), value))
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    (folder / CONFIG).write_text(json.dumps({"base": base} | share_words(folder, words or base)) + "\n")


def share_words(folder: Path, other: str) -> dict[str, str]:
    """Leaves the tokenizer in a folder out if the model `other` beside it has the same; what change.json says
    of it.
    """
    pairs = [(folder / name, folder.parent / other / name) for name in TOKENIZER]
    if not all(theirs.exists() and theirs.read_bytes() == own.read_bytes() for own, theirs in pairs):
        return {}
    for own, _ in pairs:
        own.unlink()
    return {"tokenizer": other}


def merged(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The base with its change."""
    tensors, old = load_file(folder / WEIGHTS), base_weights(base_of(folder))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    weights = {name: old[name] for name in model.state_dict().keys() & old.keys() - tensors.keys()}
    for name, value in tensors.items():
        if not name.endswith(SCALE):
            scale = tensors.get(name + SCALE)
            weights[name] = value if scale is None else begun(old.get(name), value) + scale * value.float()
    model.load_state_dict(weights, strict=False)  # a tied head is not stored
    return model.to(dtype)


def parameters(folder: Path) -> int:
    """Numbers in the merged model, read from the headers of both files."""
    shapes: dict[str, list[int]] = {}
    for path in (base_of(folder) / "model.safetensors", folder / WEIGHTS):
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if not name.endswith(SCALE)]  # noqa: SIM118 - no mapping
            shapes |= {name: file.get_slice(name).get_shape() for name in names}
    return sum(map(math.prod, shapes.values()))


def base_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of a model's folder."""
    return load_file(folder / "model.safetensors")


def begun(matrix: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    """What the change [R, C] of a matrix is added to: the base's, if it has one of as many columns."""
    if matrix is None or matrix.shape[1] != like.shape[1] or len(matrix) > len(like):
        return torch.zeros(like.shape)
    return grown(matrix, len(like))


def grown(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    """The matrix in float32 with this many rows: further ones are zero."""
    return torch.nn.functional.pad(matrix.float(), (0, 0, 0, rows - len(matrix)))
