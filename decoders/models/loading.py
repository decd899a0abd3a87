"""Loads models: shipped ones, Hub ids (with @revision) and local folders; device, dtype, tokenizer
compatibility.

Weights come from safetensors only and no remote code runs. Knows nothing of strategies.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers import PreTrainedConfig
from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
from transformers.utils import logging

from decoders.models import hub, load_problems, lora, rounded_change
from decoders.models.address import is_address
from decoders.models.catalog import is_hub_id, locate
from decoders.models.companions import class_of
from decoders.models.edited_names import edits_of
from decoders.models.loaded_model import LoadedModel
from decoders.models.memory_estimate import config_of, pick_device, pick_dtype, quantised
from decoders.models.published_denoisers import weight_names
from decoders.models.tokenizer_files import tokenizer_of
from decoders.refusal import Refusal, said_by


def load(
    name: str, device: str = "auto", dtype: str = "auto", progress: hub.Progress | None = None
) -> LoadedModel:
    """Loads a shipped model, a folder, or a Hub id (optionally `id@revision`), in evaluation mode, with the
    edits in its name (`edited_names.py`). For an address it connects to the server, which decides dtype and
    device.

    dtype: auto (float32 on the CPU, the model's own on CUDA), float32, bfloat16 or float16. `progress` is
    called as loading proceeds and may raise InterruptedError. Raises Refusal with one sentence.
    """
    if is_address(name):
        from decoders.models.served_model import connect

        return connect(name)
    if changes := edits_of(name):
        from decoders.models.edited_model import changed

        return changed(name, changes, load(changes.base, device, dtype, progress))
    device = pick_device(device)
    report = progress or (lambda words, done, total: None)
    where, revision = locate(name)
    if is_hub_id(name):
        where = str(hub.fetch(where, revision, report))
    config = config_of(name, where)
    if config.is_encoder_decoder:
        raise Refusal(f"The model {name!r} is an encoder-decoder; choose a causal language model.")
    if (
        method := quantised(config)
    ) and method not in AUTO_QUANTIZER_MAPPING:  # else misread as plain weights
        raise Refusal(f"The model {name!r} is quantised with {method}, which transformers does not know.")
    chosen = pick_dtype(dtype, device, config)
    try:
        with loaded_weights_reported(name, progress):
            tokenizer = tokenizer_of(Path(where))
            if lora.is_adapter(Path(where)):
                model = lora.with_low_rank_change(Path(where), chosen)
            else:
                model = (
                    rounded_change.with_change(Path(where), chosen)
                    if rounded_change.is_change(Path(where))
                    else class_of(config.to_dict()).from_pretrained(
                        where,
                        config=config,
                        key_mapping=weight_names(config),
                        dtype=chosen,
                        use_safetensors=True,
                        trust_remote_code=False,
                        **placed(config, device),
                    )
                )
    except (InterruptedError, MemoryError, Refusal):
        raise
    except ImportError as error:
        raise Refusal(not_installed(name, config, error)) from error
    except Exception as error:  # of a damaged file transformers raises whatever its code comes upon
        raise Refusal(load_problems.load_failure(name, where, error)) from error
    model = model.eval().requires_grad_(False)
    return LoadedModel(name, model if quantised(config) else model.to(device), tokenizer)


def placed(config: PreTrainedConfig, device: str) -> dict:
    """Options that place quantised weights on their device while they are read, since they cannot always be
    moved later.
    """
    return {"device_map": {"": device}} if quantised(config) and device != "cpu" else {}


def not_installed(name: str, config: PreTrainedConfig, error: ImportError) -> str:
    """The message about a model that needs a package which is not installed."""
    how = f" is quantised with {quantised(config)}, which" if quantised(config) else ""
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
