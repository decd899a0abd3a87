"""Estimates a model's memory before its weights are read, from its config and the headers of its safetensors
files.
"""

import json
import struct
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedConfig

from decoders.engine import fast_llama
from decoders.engine.kv_cache import slot_bytes
from decoders.models import architectures, hub, load_problems, lora, published_denoisers, rounded_change
from decoders.models.address import InVllm, Server
from decoders.models.companions import class_of, whole_class
from decoders.models.named_heads import names_heads
from decoders.models.names import Folder, Hub, Local, resolve, stored
from decoders.refusal import Refusal

TOKENS = 2048  # of KV cache in the estimate: all lanes of a run together, prompts included
RESERVE = 0.05  # share of the free memory that must stay free
DTYPES = {
    "auto": None,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class Footprint:
    """One model's memory: parameters, bytes of its weights and of one token in the KV cache, bytes to
    download.
    """

    name: str
    parameters: int
    dtype: str
    copies: int  # of the weights, at most: three if the fast forward stores other layouts of them
    weights: int
    per_token: int
    download: int
    method: str | None = None  # how its weights are quantised
    missing: tuple[str, ...] = ()  # packages that it needs and that are not installed
    held_by_server: bool = False

    @property
    def total(self) -> int:
        """Bytes with `TOKENS` tokens in the KV cache."""
        return self.weights + TOKENS * self.per_token

    def sentence(self) -> str:
        """The sum, in words."""
        if self.held_by_server:
            return f"{self.name} is held by its server, or by vLLM; what it takes is not counted here."
        size = self.weights // (self.parameters * self.copies or 1)
        laid = ", up to 3 times for speed" if self.copies == 3 else ""
        words = f"{amount(self.parameters)} parameters × {size} bytes ({self.dtype}){laid} = "
        if self.method:
            words = f"{amount(self.parameters)} parameters, quantised with {self.method}: "
        taken = f"{bytes_of(self.weights)}, and {bytes_of(self.per_token)} of KV cache per token"
        fetched = f"; {bytes_of(self.download)} to download" if self.download else ""
        needed = f"; to load it: pip install {' '.join(self.missing)}" if self.missing else ""
        return f"{self.name}: {words}{taken}{fetched}{needed}."


def pick_device(device: str = "auto") -> str:
    """`auto` is CUDA if available, else the CPU. Raises Refusal with one sentence if the device is not
    available.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise Refusal(f"There is no device {device!r}; use auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise Refusal("This machine has no CUDA device; choose the device cpu.")
    return device


def pick_dtype(dtype: str, device: str, config) -> torch.dtype:
    """`auto` is float32 on the CPU and the model's own dtype on CUDA. Raises Refusal for an unknown
    name.
    """
    if dtype not in DTYPES:
        raise Refusal(f"There is no dtype {dtype!r}; use one of {', '.join(DTYPES)}.")
    own = getattr(config, "dtype", None) or torch.float32
    return DTYPES[dtype] or (torch.float32 if device == "cpu" else own)


def footprint(name: str, dtype: str = "auto", device: str = "auto") -> Footprint:
    """The memory of the model called `name`; from the Hub it reads only headers. Raises Refusal with one
    sentence.
    """
    device = pick_device(device)
    source, download = resolve(name), 0
    if isinstance(source, Server | InVllm):
        return Footprint(name, 0, "served", 1, 0, 0, 0, held_by_server=True)
    source = stored(source)
    folder = hub.cached(source.id, source.revision) if isinstance(source, Hub) else source.folder
    if folder and names_heads(name):  # they have the target's dtype and further keys and values of their own
        count = header_parameters(folder)
        return Footprint(name, count, "bfloat16", 1, 2 * count, 0, 0)
    if folder and lora.by_peft(folder):  # merged when loaded
        from decoders.models import peft_adapter

        base = footprint(peft_adapter.base_of(name, folder).name, dtype, device)
        return replace(base, name=name)
    where, revision = (str(folder), None) if folder else (source.id, source.revision)
    if folder is None:
        repository = hub.listing(where, revision)
        revision, download = repository.commit, repository.missing
    file = gguf_options(source)
    config = config_of(name, where, revision, file)
    method = quantised(config)
    if folder and lora.is_adapter(folder):  # merged when loaded
        count = header_parameters(lora.base_of(folder)) + len(lora.added(folder)) * config.hidden_size
    elif folder and rounded_change.is_change(folder):
        count = rounded_change.parameters(folder)
    elif whole := whole_class(config):
        from decoders.models import text_part

        count = text_part.parameters(name, whole, config)
    elif file or method:
        count = parameters(name, config)
    else:
        count = header_parameters(folder) if folder else hub.parameters(where, revision)
    kind = pick_dtype(dtype, device, config)
    text = config.get_text_config()
    copies = 3 if fast_llama.fits(config, count) else 1
    try:
        per_token = slot_bytes(text, kind.itemsize)
    except (AttributeError, TypeError):  # no attention heads, no KV cache
        per_token = 0
    dtype, weights, missing = str(kind).removeprefix("torch."), count * kind.itemsize * copies, ()
    if method:
        from decoders.models import quantised_packages

        missing = quantised_packages.missing(method)
        if device != "cpu" or method not in quantised_packages.UNPACKED:
            weights = stored_bytes(folder) if folder else download
    return Footprint(name, count, dtype, copies, weights, per_token, download, method, missing)


def quantised(config: PreTrainedConfig) -> str | None:
    """How a model's weights are quantised, None if they are not."""
    given = getattr(config, "quantization_config", None)
    if given is None:
        return None
    given = given if isinstance(given, dict) else given.to_dict()
    if given.get("load_in_4bit") or given.get("load_in_8bit"):  # older files name no method
        return "bitsandbytes"
    return str(given.get("quant_method", "an unknown method"))


def stored_bytes(folder: Path) -> int:
    """Bytes of the safetensors files in a folder that loading reads."""
    names = hub.chosen([path.name for path in folder.iterdir()])
    return sum((folder / name).stat().st_size for name in names if name.endswith(".safetensors"))


def parameters(name: str, config: PreTrainedConfig) -> int:
    """The number of parameters of the model that a config describes, by building it without weights. Raises
    Refusal with one sentence.
    """
    try:
        with torch.device("meta"):
            model = class_of(config.to_dict()).from_config(config, trust_remote_code=False)
    except Exception as error:  # of a false config it raises whatever its code comes upon
        raise Refusal(load_problems.failed(name, load_problems.quoted(error))) from error
    return sum(one.numel() for one in model.parameters())


def gguf_options(source: Local) -> dict[str, str]:
    """Options with which transformers reads a model in a GGUF file; none for any other model. Raises Refusal
    with one sentence if the file is damaged, or if the package that reads it is missing.
    """
    if not isinstance(source, Folder) or source.gguf is None:
        return {}
    if problem := load_problems.of_gguf(source.folder / source.gguf):
        raise Refusal(load_problems.failed(source.name, problem))
    if missing := [one for one in ("gguf", "accelerate") if find_spec(one) is None]:
        raise Refusal(
            f"The model {source.name!r} is a GGUF file; to read it: pip install {' '.join(missing)}."
        )
    return {"gguf_file": source.gguf}


def config_of(
    name: str, where: str, revision: str | None = None, gguf: dict[str, str] | None = None
) -> PreTrainedConfig:
    """The config of a folder, a Hub id or a GGUF file (`gguf_options`). Raises Refusal with one sentence
    about `name`.
    """
    published_denoisers.register()
    try:
        architectures.register_unless_known(model_type_in(where))
        options = ({"revision": revision} if revision else {}) | (gguf or {})
        return AutoConfig.from_pretrained(where, trust_remote_code=False, **options)
    except Exception as error:  # of a damaged file it raises whatever its code comes upon
        place = Path(where, *(gguf or {}).values())
        raise Refusal(load_problems.load_failure(name, place, error)) from error


def model_type_in(where: str) -> str | None:
    """The architecture of the model in a folder, as its config.json names it; None for a Hub id."""
    file = Path(where, "config.json")
    return json.loads(file.read_text("utf-8")).get("model_type") if file.is_file() else None


def header_parameters(folder: Path) -> int:
    """The number of parameters in a folder's safetensors files, from their headers. Raises Refusal with
    one sentence if one is damaged.
    """
    total = 0
    for name in hub.chosen([path.name for path in folder.iterdir()]):
        if not name.endswith(".safetensors"):
            continue
        try:
            with (folder / name).open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(min(length, 100_000_000)))
            shapes = [entry["shape"] for key, entry in header.items() if key != "__metadata__"]
        except (struct.error, ValueError, KeyError, TypeError, OSError) as error:
            raise Refusal(f"The file {name} is damaged: its safetensors header cannot be read.") from error
        for shape in shapes:
            count = 1
            for side in shape:
                count *= side
            total += count
    if not total:
        raise Refusal(f"The folder {str(folder)!r} holds no model.safetensors; only such weights are loaded.")
    return total


def amount(number: int) -> str:
    """4328640 as `4.3 million`."""
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,}"


def bytes_of(number: int) -> str:
    """17314560 as `17 MB`."""
    for size, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if number >= size:
            value = number / size
            return f"{value:.1f} {word}" if value < 10 else f"{value:,.0f} {word}"
    return f"{number} bytes"
