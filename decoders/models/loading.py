"""Loads models: shipped ones, Hub ids (with @revision) and local folders; device, dtype, tokenizer
compatibility.

Weights come from safetensors only and no remote code runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from decoders.models import hub, load_problems, lora, rounded_change
from decoders.models.address import InVllm, Server
from decoders.models.companions import class_of, whole_class
from decoders.models.loaded_model import LoadedModel
from decoders.models.memory_estimate import config_of, gguf_options, pick_device, pick_dtype, quantised
from decoders.models.model_files import read_weights, tokenizer_of
from decoders.models.names import Edited, Hub, Local, Stored, resolve
from decoders.models.published_denoisers import weight_names
from decoders.refusal import Refusal, said_by


def load(
    name: str, device: str = "auto", dtype: str = "auto", progress: hub.Progress | None = None
) -> LoadedModel:
    """Loads the model that a name means (`names.py`), in evaluation mode, with the edits in its name
    (`edited_names.py`). For an address it connects to the server, which decides dtype and device.

    dtype: auto (float32 on the CPU, the model's own on CUDA), float32, bfloat16 or float16. `progress` is
    called as loading proceeds and may raise InterruptedError. Raises Refusal with one sentence.
    """
    match resolve(name):
        case Server() as server:
            from decoders.models.served_model import connect

            return connect(server)
        case InVllm() as model:
            from decoders.models.served_model import start

            return start(model)
        case source:
            return read(source, device, dtype, progress)


def read(source: Local, device: str, dtype: str, progress: hub.Progress | None) -> LoadedModel:
    """As `load`, for a model whose weights are read here."""
    if isinstance(source, Edited):
        from decoders.models.edited_model import changed

        return changed(source, read(source.base, device, dtype, progress))
    name, device = source.name, pick_device(device)
    folder = files(source, progress or (lambda words, done, total: None))
    if lora.by_peft(folder):
        from decoders.models import peft_adapter

        peft_adapter.check_package(name)
        base = peft_adapter.base_of(name, folder)
        return peft_adapter.merged(name, folder, read(base, device, dtype, progress))
    settings = folder / "generation_config.json"  # which transformers passes over if it is damaged
    if settings.is_file() and (problem := load_problems.of_json(settings)):
        raise Refusal(load_problems.failed(name, problem))
    gguf = gguf_options(source)
    config = config_of(name, str(folder), gguf=gguf)
    if config.is_encoder_decoder:
        raise Refusal(f"The model {name!r} is an encoder-decoder; choose a causal language model.")
    if problem := load_problems.of_encoder(config) or load_problems.of_denoiser(config):
        raise Refusal(load_problems.failed(name, problem))
    if method := quantised(config):
        from decoders.models import quantised_packages

        quantised_packages.check(name, method)
    chosen = pick_dtype(dtype, device, config)
    try:
        with loaded_weights_reported(name, progress):
            tokenizer = tokenizer_of(folder, **gguf)
            model, unused, left_out = built(name, folder, config, chosen, placed(method, device) | gguf)
    except (InterruptedError, MemoryError, Refusal):
        raise
    except ImportError as error:
        raise Refusal(not_installed(name, method, error)) from error
    except Exception as error:  # of a damaged file transformers raises whatever its code comes upon
        place = Path(folder, *gguf.values())
        raise Refusal(load_problems.load_failure(name, place, error)) from error
    scored = model.config.get_text_config().vocab_size
    if problem := load_problems.of_tokens(scored, tokenizer, model.generation_config):
        raise Refusal(load_problems.failed(name, problem))
    model = model.eval().requires_grad_(False)
    model = model if method else model.to(device)
    return LoadedModel(name, model, tokenizer, unused_weights=unused, parts_left_out=left_out)


def built(
    name: str, folder: Path, config: PreTrainedConfig, dtype: torch.dtype, further: dict
) -> tuple[PreTrainedModel, list[str], list[str]]:
    """The model in a folder, the weights in its files without a place in it, and its parts that are not
    loaded. Raises Refusal with one sentence, and what transformers raises.
    """
    if lora.is_adapter(folder):
        return lora.with_low_rank_change(folder, dtype), [], []
    if rounded_change.is_change(folder):
        return rounded_change.with_change(folder, dtype), [], []
    options = dict(config=config, key_mapping=weight_names(config), dtype=dtype, **further)
    if whole := whole_class(config):
        from decoders.models import text_part

        return text_part.read(name, whole, folder, **options)
    return *read_weights(name, class_of(config.to_dict()), folder, **options), []


def files(source: Stored, report: hub.Progress) -> Path:
    """The folder with a model's files, downloaded if needed. Raises Refusal with one sentence."""
    return hub.fetch(source.id, source.revision, report) if isinstance(source, Hub) else source.folder


def placed(method: str | None, device: str) -> dict:
    """Options that place quantised weights on their device while they are read, since they cannot always be
    moved later.
    """
    return {"device_map": {"": device}} if method and device != "cpu" else {}


def not_installed(name: str, method: str | None, error: ImportError) -> str:
    """The message about a model that needs a package which is not installed."""
    how = f" is quantised with {method}, which" if method else ""
    return f"The model {name!r}{how} needs a package that is not installed: {said_by(error)}."


@contextmanager
def loaded_weights_reported(name: str, progress: hub.Progress | None) -> Iterator[None]:
    """Reports the number of loaded weights to `progress`, through transformers' hook for progress bars."""
    if progress is None:
        yield
        return

    def bar(factory: Callable, given: tuple, options: dict) -> Iterator:
        weights = list(given[0]) if given else []
        for done, weight in enumerate(weights):
            progress(f"Loading {name}", done, len(weights))
            yield weight

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def check_pair(target: LoadedModel, draft: LoadedModel) -> None:
    """Raises Refusal with one sentence unless the two have the same vocabulary."""
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    if ours != theirs:
        different = len(set(ours.items()) ^ set(theirs.items()))
        raise Refusal(
            f"The draft {draft.name!r} has another tokenizer than the target {target.name!r} "
            f"({different:,} entries differ); choose a draft with the same vocabulary."
        )
    if draft.engine.vocabulary != target.engine.vocabulary:
        raise Refusal(
            f"The draft {draft.name!r} scores {draft.engine.vocabulary:,} tokens, the target {target.name!r} "
            f"{target.engine.vocabulary:,}; choose a draft with the same vocabulary."
        )
