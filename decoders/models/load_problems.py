"""Why the files of a model could not be loaded: one sentence that names the file, for command line and page.

What transformers and safetensors raise about a damaged folder names neither the file nor a way out, so the
files are looked at once more, in the order in which loading reads them.
"""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from transformers import GenerationConfig, PreTrainedConfig, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from decoders.models.named_heads import names_heads
from decoders.refusal import said_by

INDEX = "model.safetensors.index.json"
WORDS = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)
AGAIN = "copy or download it again"
POINTER = b"version https://git-lfs"  # how the file begins that Git LFS leaves in place of a large one


def load_failure(name: str, where: str | Path, error: Exception) -> str:
    """Why the model `name` in the folder `where` (or the Hub id) could not be loaded, after `error`."""
    folder = Path(where)
    found = of_folder(folder) if folder.is_dir() else None
    return failed(name, found or of_code(error) or quoted(error))


def failed(name: str, why: str) -> str:
    """The sentence about a model that could not be loaded."""
    return f"The model {name!r} could not be loaded: {why}"


def of_folder(folder: Path) -> str | None:
    """The first file of a folder that is missing or damaged, and what to do about it; None if all can be
    read.
    """
    checks = (of_settings, of_heads, of_shards, of_weights, of_tokenizer, of_architecture)
    return next(filter(None, (check(folder) for check in checks)), None)


def of_settings(folder: Path) -> str | None:
    """As `of_folder`, of the files of JSON and templates."""
    for path in (folder / "config.json", *sorted(folder.glob("*.json"))):
        if problem := of_json(path):
            return problem
    for path in sorted(folder.glob("*.jinja")):
        try:
            path.read_text("utf-8")
        except ValueError:
            return of_damage(path, "is not UTF-8 text")
    return None


def of_shards(folder: Path) -> str | None:
    """As `of_folder`, of the weights that an index names."""
    if not (folder / INDEX).is_file() or (folder / "model.safetensors").is_file():
        return None
    shards = json.loads((folder / INDEX).read_text("utf-8")).get("weight_map")
    if not isinstance(shards, dict):
        return f"the file {INDEX} does not say which file holds which weight; {AGAIN}."
    missing = [one for one in sorted(set(map(str, shards.values()))) if not (folder / one).is_file()]
    return f"the file {missing[0]} is missing, which {INDEX} names; {AGAIN}." if missing else None


def of_weights(folder: Path) -> str | None:
    """As `of_folder`, of the weights themselves."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt"):
                pass
        except (SafetensorError, OSError):
            return of_damage(path, "is damaged or incomplete")
    return None


def of_tokenizer(folder: Path) -> str | None:
    """As `of_folder`, of its tokenizer."""
    if not any((folder / one).is_file() for one in WORDS):
        return "its folder holds no tokenizer; put its tokenizer.json beside config.json."
    return of_words(folder / "tokenizer.json")


def of_architecture(folder: Path) -> str | None:
    """The sentence about a config.json that names no architecture."""
    if json.loads((folder / "config.json").read_text("utf-8")).get("model_type"):
        return None
    return f"the file config.json names no model_type; {AGAIN}."


def of_encoder(config: PreTrainedConfig) -> str | None:
    """The sentence about a model like BERT, whose tokens also see those after them; None for any other.
    transformers loads it as a causal model and only warns.
    """
    fills_gaps = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if not fills_gaps or config.to_dict().get("is_decoder", True):
        return None
    return (
        "it is an encoder, which fills gaps in a text and does not continue one; choose a causal language "
        'model. If it was trained to continue texts, its config.json must say "is_decoder": true.'
    )


def of_denoiser(config: PreTrainedConfig) -> str | None:
    """The sentence about a diffusion model of transformers; None for any other."""
    if not config.model_type.startswith("diffusion_"):
        return None
    return (
        f"it is a diffusion model of the kind {config.model_type}, which is not read; choose LLaDA, Dream, "
        "the shipped llama-tiny-diffusion or a causal language model."
    )


def of_damage(path: Path, what: str) -> str:
    """The sentence about a file that cannot be read."""
    with path.open("rb") as file:
        begun = file.read(len(POINTER))
    if begun == POINTER:
        return f"the file {path.name} is only a pointer of Git LFS; run git lfs pull in its folder."
    if not begun:
        return f"the file {path.name} is empty; {AGAIN}."
    return f"the file {path.name} {what} ({path.stat().st_size:,} bytes); {AGAIN}."


def of_gguf(path: Path) -> str | None:
    """Why a file is none of GGUF; None if it is one."""
    with path.open("rb") as file:
        begun = file.read(4)
    return None if begun == b"GGUF" else of_damage(path, "is not a GGUF file")


def of_json(path: Path) -> str | None:
    """Why a file cannot be read as a JSON object; None if it can."""
    try:
        readable = isinstance(json.loads(path.read_text("utf-8")), dict)
    except (OSError, ValueError):
        readable = False
    if readable:
        return None
    missing = f"the file {path.name} cannot be opened; {AGAIN}."
    return of_damage(path, "is not a JSON object") if path.is_file() else missing


def of_words(path: Path) -> str | None:
    """Why a tokenizer.json cannot be used; None if it can, or if there is none."""
    from tokenizers import Tokenizer

    if not path.is_file():
        return None
    try:
        Tokenizer.from_file(str(path))
    except Exception:  # of tokenizers, which raises Exception itself
        return f"the file {path.name} holds no tokenizer that can be read; {AGAIN}."
    return None


def of_tokens(vocabulary: int, tokenizer: PreTrainedTokenizerBase, settings: GenerationConfig) -> str | None:
    """Why a model that scores so many tokens cannot be used with its tokenizer, or with the settings of its
    generation config: they name a token that it lacks. None if it can. Special tokens may lie beyond that
    number: tokenizer classes add their own, and the lane refuses a prompt with one of them.
    """
    special = {*tokenizer.all_special_tokens}
    tokens = {token: at for token, at in tokenizer.get_vocab().items() if token not in special}
    largest = max(tokens, key=tokens.get, default=None)
    if largest is not None and tokens[largest] >= vocabulary:
        return (
            f"its tokenizer has the token {largest[:40]!r} with the id {tokens[largest]:,}, and the model "
            f"scores {vocabulary:,} tokens; use the tokenizer that belongs to it."
        )
    for key, given in (("eos_token_id", settings.eos_token_id), ("bos_token_id", settings.bos_token_id)):
        for one in given if isinstance(given, list) else [given]:
            if one is not None and not (isinstance(one, int) and 0 <= one < vocabulary):
                return (
                    f"its generation_config.json or config.json sets {key} to {one!r}, and the model scores "
                    f"{vocabulary:,} tokens; correct it."
                )
    return None


def of_heads(folder: Path) -> str | None:
    """The sentence about a folder that holds draft heads and no model."""
    if not names_heads(str(folder)):
        return None
    return "it holds draft heads and no model; name it as the draft of the model that they were trained for."


def of_code(error: Exception) -> str | None:
    """The sentence about a model that brings Python code of its own, which is never run."""
    if "trust_remote_code" not in str(error):
        return None
    return (
        "it needs Python code of its own, which is not run here; choose one that transformers itself knows."
    )


def quoted(error: Exception) -> str:
    """What another library says, with the type of its error."""
    return f"{type(error).__name__}: {said_by(error)}."
