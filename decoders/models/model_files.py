"""What transformers reads from a model's folder: its tokenizer, and its weights, all of them or none, since
it would fill what is missing, or has another shape, with random numbers.
"""

import json
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from decoders.models import lora, rounded_change
from decoders.models.load_problems import failed, of_heads
from decoders.refusal import Refusal

log = logging.getLogger("transformers.modeling_utils")


def tokenizer_of(folder: Path, **gguf: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the model in a folder, which may be stored as a change of another, or in a GGUF file.
    Raises what transformers raises.
    """
    if lora.is_adapter(folder):
        return lora.tokenizer_of(folder)
    if rounded_change.is_change(folder):
        folder = rounded_change.words_of(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **gguf)
    apart = folder / "chat_template.json"  # where processors of images kept it, which are not loaded
    if tokenizer.chat_template is None and apart.is_file():
        tokenizer.chat_template = json.loads(apart.read_text("utf-8")).get("chat_template")
    return tokenizer


def read_weights(
    name: str, architecture: type, folder: Path, **options: Any
) -> tuple[PreTrainedModel, list[str]]:
    """The model in a folder, and the weights in its files that the architecture has no place for. options:
    further ones of `from_pretrained`.

    Raises Refusal with one sentence that names missing weights and those of another shape; weights that are
    tied to others, and those that an architecture declares optional, may be missing. Also raises what
    transformers raises.
    """
    with quiet():
        model, found = architecture.from_pretrained(
            folder,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, with their names
            **options,
        )
    if other := sorted(found["mismatched_keys"]):
        key, stored, wanted = other[0]
        raise Refusal(
            failed(
                name,
                f"its files hold {key} with the shape {list(stored)} where its config.json asks for "
                f"{list(wanted)}{beside(other)}; use the config.json that belongs to them.",
            )
        )
    missing, unused = sorted(found["missing_keys"]), sorted(found["unexpected_keys"])
    if missing:
        instead = f", and hold {unused[0]}{beside(unused)}, which it has no place for" if unused else ""
        lacking = f"its files lack {missing[0]}{beside(missing)} of {type(model).__name__}{instead}"
        either = of_heads(folder) or f"{lacking}; use the files and the config.json of one model."
        raise Refusal(failed(name, either))
    return model, unused


def beside(names: Collection) -> str:
    """The words about the names after the first."""
    return f" and {len(names) - 1:,} more" if len(names) > 1 else ""


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers from printing a table of these names.

    It sets a filter and not a level: if this logger had a level of its own, transformers would also report
    which layers are not sharded.
    """
    log.addFilter(no_records)
    try:
        yield
    finally:
        log.removeFilter(no_records)


def no_records(record: logging.LogRecord) -> bool:
    """A filter that lets errors through alone."""
    return record.levelno >= logging.ERROR
