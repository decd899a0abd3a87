"""What measurements decode with: the model that heads read, and a lane for each of many prompts."""

from collections.abc import Callable, Iterable
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.head_files import read_config
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from decoders.trace.trace import Trace

Ways = dict[str, tuple[str, dict]]  # the name of a way of decoding -> strategy and parameters


def model_with(folder: Path, dtype: str = "auto") -> LoadedModel:
    """The shipped model in the neighbouring folder that the heads in `folder` read, with these heads."""
    model = load(str(folder.parent / read_config(folder.name, folder)["target"]), dtype=dtype)
    model.heads.update(load_heads(str(folder), model))
    return model


def traces(
    strategy: str,
    asked: Iterable[str | list[int]],
    models: dict[str, LoadedModel],
    settings: dict,
    new_tokens: int,
    seed: int | None = None,
) -> list[Trace]:
    """The trace of each prompt, a text or its tokens. seed: of all lanes; each its number if None."""
    result = []
    for at, prompt in enumerate(asked):
        ids = models["target"].encode(prompt) if isinstance(prompt, str) else prompt
        lane = Lane(strategy, ids, models, settings, at if seed is None else seed, Limits(new_tokens))
        result.append(lane.run())
    return result


def compared(
    ways: Ways,
    groups: dict[str, list],
    models: dict[str, LoadedModel],
    new_tokens: int,
    counted: Callable[[list[Trace]], dict[str, float]],
    seed: int | None = None,
) -> dict[str, dict[str, float]]:
    """Group of prompts and way of decoding -> what is counted in the traces of all its prompts. A group
    without a name is not named in the rows; seed: see `traces`.
    """
    result = {}
    for group, asked in groups.items():
        for way, (strategy, settings) in ways.items():
            row = f"{group}, {way}" if group else way
            result[row] = counted(traces(strategy, asked, models, settings, new_tokens, seed))
            print(row, result[row], flush=True)
    return result


def answer_of(model: LoadedModel, trace: Trace) -> str:
    """What a lane wrote, without ends of text."""
    return model.tokenizer.decode([token for token in trace.output() if token not in model.eos])
