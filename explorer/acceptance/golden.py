"""Reference acceptance: mean tokens per round for each length of the draft, in the YAML that inference
benchmarks publish as golden acceptance lengths:

    model:
      mode:
        1: 1.78
        2: 2.38

A file may hold several models and modes of each; comments say how they were measured. Tokens per round are
1 + accepted tokens / rounds, over whole rounds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml

from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.acceptance.drafters import Drafter, longest_chain
from explorer.acceptance.measuring import Settings, decoded, shape_of
from explorer.acceptance.prompts import Prompt
from explorer.text_file import read_text
from visualizers.analysis.lane_stats import LaneFacts

LONGEST = 8  # tokens of the longest draft if nobody says otherwise, as the published files have
MODE = "default"  # of a curve that is written here
LARGEST = 64  # tokens of a draft that a file may name
FORM = "a model, below it a mode, and below that the number of drafted tokens with the tokens per round"


@dataclass(frozen=True)
class Reference:
    """A curve: tokens drafted per round -> mean tokens gained per round, of `model` in `mode`."""

    model: str
    mode: str
    lengths: dict[int, float]


@dataclass(frozen=True)
class Gained:
    """Mean tokens gained per round with a 95 % interval, over this many rounds."""

    mean: float
    low: float
    high: float
    rounds: int


def gained(traces: Sequence[Trace]) -> Gained | None:
    """Tokens gained per round, of rounds that the end of the text did not cut; None for fewer than two."""
    return of_rounds([1 + one.accepted for trace in traces for one in LaneFacts(trace).whole_rounds])


def of_rounds(counts: Sequence[int]) -> Gained | None:
    """The mean of tokens gained in each round, with its interval; None for fewer than two."""
    if len(counts) < 2:
        return None
    mean, half = fmean(counts), 1.96 * stdev(counts) / math.sqrt(len(counts))
    return Gained(mean, mean - half, mean + half, len(counts))


def curve(
    target: Any, drafter: Drafter, prompts: Sequence[Prompt], settings: Settings
) -> Iterator[int | dict[int, Gained]]:
    """Measures drafts of 1 to `num_assistant_tokens` tokens (LONGEST without), each by decoding every prompt;
    yields the number of texts done, and finally length -> what was gained.

    Raises Refusal with one sentence if the drafter drafts no chains.
    """
    wanted = settings.num_assistant_tokens or LONGEST
    shape_of(drafter.strategy, Settings(num_assistant_tokens=1))  # refuses a drafter without chains
    found, done = {}, 0
    for length in range(1, (longest_chain(drafter.strategy, wanted) or 0) + 1):
        shape = shape_of(drafter.strategy, Settings(num_assistant_tokens=length))
        traces = []
        for number, prompt in enumerate(prompts, 1):
            trace = yield from decoded(
                drafter.strategy, drafter.models, prompt, settings, shape, number, done
            )
            traces.append(trace)
            done += 1
            yield done
        if (one := gained(traces)) is not None:
            found[length] = one
    yield found


def written(model: str, found: dict[int, Gained], about: Sequence[str]) -> str:
    """A curve as YAML. about: lines that say how it was measured."""
    comments = [f"# {line}" for line in (*about, "key: tokens drafted per round; value: mean tokens gained")]
    comments += [
        f"# {length}: {one.low:.2f} to {one.high:.2f}, 95 % interval over {one.rounds} rounds"
        for length, one in found.items()
    ]
    values = {length: round(one.mean, 2) for length, one in found.items()}
    return "\n".join(comments) + "\n" + yaml.safe_dump({model: {MODE: values}}, sort_keys=False)


def read(name: str, target: str) -> Reference:
    """The curve in a file, `FILE.yaml,model=NAME,mode=NAME`; model and mode may be left out where there is
    only one, or where the target's name is a model's. Raises Refusal with one sentence.
    """
    path, *options = name.split(",")
    chosen = dict(one.split("=", 1) for one in options if "=" in one)
    if len(chosen) < len(options) or chosen.keys() - {"model", "mode"}:
        raise Refusal(f"{path} may be followed by ,model=NAME and ,mode=NAME, not {','.join(options)!r}.")
    try:
        models = yaml.safe_load(read_text(Path(path)))
    except yaml.YAMLError as error:
        raise Refusal(
            f"{path} is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}."
        ) from error
    if not isinstance(models, dict):
        raise Refusal(f"{path} holds no reference acceptance: {FORM}.")
    models = {str(one): modes for one, modes in models.items() if not str(one).startswith("_")}
    model, modes = pick(models, chosen.get("model"), target, "model", path)
    if not isinstance(modes, dict):
        raise Refusal(f"{path} holds no reference acceptance: {FORM}.")
    mode, lengths = pick(
        {str(one): own for one, own in modes.items()}, chosen.get("mode"), None, "mode", path
    )
    return Reference(model, mode, checked(lengths, path))


def pick(found: dict, wanted: str | None, usual: str | None, what: str, path: str) -> tuple[str, Any]:
    """The entry that is wanted, the usual one, or the only one. Raises Refusal with one sentence."""
    name = wanted or (usual if usual in found else None) or (next(iter(found)) if len(found) == 1 else None)
    if name not in found:
        raise Refusal(f"Choose a {what} of {path} with ,{what}=NAME: {', '.join(found) or 'none'}.")
    return name, found[name]


def checked(lengths: Any, path: str) -> dict[int, float]:
    """A curve. Raises Refusal with one sentence if it is none."""
    try:
        known = {int(length): float(value) for length, value in lengths.items()}
    except (AttributeError, TypeError, ValueError):
        raise Refusal(f"{path} holds no reference acceptance: {FORM}.") from None
    for length, value in known.items():
        if not (1 <= length <= LARGEST and 1.0 <= value <= length + 1):
            raise Refusal(
                f"{path} says that drafts of {length} tokens gain {value:g} per round; they gain from 1 to "
                f"{length + 1}."
            )
    if not known:
        raise Refusal(f"{path} holds no reference acceptance: {FORM}.")
    return known
