"""Where the tokenizer of a model's folder is: in that folder, or in that of another model. Knows folders."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from decoders.models import lora, rounded_change


def tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of the model in a folder, which may be stored as a change of another. Raises what
    transformers raises.
    """
    if lora.is_adapter(folder):
        return lora.tokenizer_of(folder)
    if rounded_change.is_change(folder):
        folder = rounded_change.words_of(folder)
    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
