"""Adapters as the package peft saves them, merged into their base by peft itself: LoRA, DoRA, IA3 and the
other kinds that change weights. The shipped adapters, which need no package, are in lora.py.
"""

import json
import warnings
from importlib.util import find_spec
from pathlib import Path

from decoders.models.load_problems import AGAIN, failed, of_json, of_weights, quoted
from decoders.models.loaded_model import LoadedModel
from decoders.models.lora import CONFIG, WEIGHTS
from decoders.models.model_files import tokenizer_of
from decoders.models.names import Hub, Local, local
from decoders.refusal import Refusal

TOKENIZER = "tokenizer_config.json"


def base_of(name: str, folder: Path) -> Local:
    """The base of the adapter in a folder: a folder inside or beside it, or what was named to peft. Raises
    Refusal with one sentence.
    """
    for problem in (of_json(folder / CONFIG), of_weights(folder), of_absence(folder)):
        if problem:
            raise Refusal(failed(name, problem))
    settings = json.loads((folder / CONFIG).read_text("utf-8"))
    given, revision = settings.get("base_model_name_or_path"), settings.get("revision")
    if not isinstance(given, str) or not given:
        raise Refusal(failed(name, f"its {CONFIG} names no base; set base_model_name_or_path to one."))
    beside = next((one for one in (folder / given, folder.parent / given) if one.is_dir()), None)
    base = local(str(beside or given))
    return Hub(given, given, revision) if isinstance(base, Hub) and revision else base


def of_absence(folder: Path) -> str | None:
    """The sentence about an adapter without its weights, as `load_problems.of_folder`."""
    return None if (folder / WEIGHTS).is_file() else f"the file {WEIGHTS} is missing; {AGAIN}."


def check_package(name: str) -> None:
    """Raises Refusal with one sentence unless peft is installed."""
    if find_spec("peft") is None:
        raise Refusal(f"The model {name!r} is an adapter as peft saves it, and needs it: pip install peft.")


def merged(name: str, folder: Path, base: LoadedModel) -> LoadedModel:
    """The base, freshly loaded, with the adapter in a folder merged into its weights. Raises Refusal with one
    sentence if the two do not fit.
    """
    from peft import PeftConfig, PeftModel

    if hasattr(base.model.config, "quantization_config"):
        raise Refusal(failed(name, f"its base {base.name!r} is quantised; name one that is not."))
    tokenizer = tokenizer_of(folder) if (folder / TOKENIZER).is_file() else base.tokenizer
    model, rows = base.model, max(tokenizer.get_vocab().values()) + 1
    try:
        settings = PeftConfig.from_pretrained(folder)
        if settings.is_prompt_learning:
            kind = settings.peft_type.value
            raise Refusal(failed(name, f"it is of the kind {kind}, which changes no weights of its base."))
        if rows > model.get_input_embeddings().weight.shape[0]:  # it was trained with further tokens
            model.resize_token_embeddings(rows, mean_resizing=False)
        with warnings.catch_warnings(action="ignore"):  # about what is refused below
            adapted = PeftModel.from_pretrained(model, folder)
            found = adapted.load_adapter(folder, "default")
        if odd := of_fit(found):
            raise Refusal(failed(name, f"{odd} its base {base.name!r}; name the base of its training."))
        model = adapted.merge_and_unload()
    except Refusal:
        raise
    except Exception as error:  # of an adapter that does not fit peft raises whatever its code comes upon
        raise Refusal(failed(name, quoted(error))) from error
    model = model.eval().requires_grad_(False)
    return LoadedModel(name, model, tokenizer, parts_left_out=base.parts_left_out)


def of_fit(found: object) -> str | None:
    """The beginning of the sentence about a weight of an adapter that its base has no place for, or a place
    that it has no weight for, after what peft found while loading; None if they fit.
    """
    # a vocabulary that was trained is stored twice, once under a name that peft itself does not know
    unknown = [weight for weight in found.unexpected_keys if ".modules_to_save." not in weight]
    if unknown:
        return f"its {WEIGHTS} holds {unknown[0]}, which has no place in"
    return f"its {WEIGHTS} lacks {found.missing_keys[0]} for" if found.missing_keys else None
