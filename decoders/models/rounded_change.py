"""Models shipped as the difference from another shipped model, rounded to eight bits per number, so that two
models of one family take little more space than one and a half. Once loaded they are plain causal LMs.

A folder holds the files of a plain model, except that `change.safetensors` and `change.json` replace
`model.safetensors`. For each matrix `W` of the merged model they hold int8 numbers q and a scale s per row,
with `W = base + s q` (rows and matrices that the base lacks, or has in another shape, start from zero);
vectors are stored whole, and matrices equal to the base's are left out. A tokenizer shared with another model
is stored only in that model's folder, which `change.json` names.
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
LARGEST = 127  # largest int8


def is_change(folder: Path) -> bool:
    """Whether a folder holds a rounded change of another model."""
    return (folder / CONFIG).exists()


def base_of(folder: Path) -> Path:
    """The folder of its base model, in the same parent folder."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8"))["base"]


def words_of(folder: Path) -> Path:
    """The folder that holds its tokenizer: itself, or another model's."""
    return folder.parent / json.loads((folder / CONFIG).read_text("utf-8")).get("tokenizer", folder.name)


def int8_rows(change: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(q [R, C] in int8, s [R, 1] in float32), with s q closest to the change [R, C]."""
    scale = change.abs().amax(1, keepdim=True).clamp(min=1e-12) / LARGEST
    return (change / scale).round().to(torch.int8), scale


def write(folder: Path, base: str, words: str | None = None) -> None:
    """Replaces the weights in a folder by their difference from the shipped model `base`, and its tokenizer,
    if equal, by a reference to that of the model `words` (default: the base).
    """
    weights, old = load_file(folder / "model.safetensors"), base_weights(folder.parent / base)
    tensors = {}
    for name, value in weights.items():
        if value.ndim != 2:
            tensors[name] = value
        elif name not in old or not torch.equal(value, old[name]):
            tensors[name], tensors[name + SCALE] = int8_rows(value.float() - begun(old.get(name), value))
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    (folder / CONFIG).write_text(
        json.dumps({"base": base} | share_words(folder, words or base)) + "\n", encoding="utf-8"
    )


def share_words(folder: Path, other: str) -> dict[str, str]:
    """Deletes the tokenizer in a folder if the model `other` has the same; returns the entry for
    change.json.
    """
    pairs = [(folder / name, folder.parent / other / name) for name in TOKENIZER]
    if not all(theirs.exists() and theirs.read_bytes() == own.read_bytes() for own, theirs in pairs):
        return {}
    for own, _ in pairs:
        own.unlink()
    return {"tokenizer": other}


def with_change(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The base model with the change applied."""
    tensors, old = load_file(folder / WEIGHTS), base_weights(base_of(folder))
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
    weights = {name: old[name] for name in model.state_dict().keys() & old.keys() - tensors.keys()}
    for name, value in tensors.items():
        if not name.endswith(SCALE):
            scale = tensors.get(name + SCALE)
            weights[name] = value if scale is None else begun(old.get(name), value) + scale * value.float()
    model.load_state_dict(weights, strict=False)  # a tied head is not stored
    return model.to(dtype)


def parameters(folder: Path) -> int:
    """The merged model's number of parameters, from the headers of both files."""
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
    """What the change [R, C] of a matrix is added to: the base's matrix if it has C columns, else zeros."""
    if matrix is None or matrix.shape[1] != like.shape[1] or len(matrix) > len(like):
        return torch.zeros(like.shape)
    return grown(matrix, len(like))


def grown(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    """The matrix in float32, padded with zeros to this many rows."""
    return torch.nn.functional.pad(matrix.float(), (0, 0, 0, rows - len(matrix)))
