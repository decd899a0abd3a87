"""The two sides of a comparison: an engine that scores the text now, or log-probabilities that were recorded.

A side gives its numbers token by token, so that whole distributions are held for only a few tokens at a time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import torch

from decoders.engine.pieces import in_pieces
from decoders.engine.served import ServerProblem
from decoders.engine.tree import Tree
from decoders.models import address
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.refusal import Refusal
from decoders.trace.imports.answer import Answer
from decoders.trace.trace import Trace
from explorer.text_file import read_text
from explorer.twin.recordings import Recording, is_recording, of_answer, recording
from visualizers.analysis.twin import TOP, Reading

OPTIONS = ("dtype", "device", "tokens_per_forward", "record")
PIECE = 64  # tokens whose whole distributions are held at the same time


Scored = tuple[Reading, torch.Tensor | None]  # and the whole distribution [V] (log-probabilities, float64)


class Side(Protocol):
    """`first`: the first token of the text that it says something of; `format`: the number format, None if it
    is not known.
    """

    name: str
    format: str | None
    first: int

    def check(self, tokens: Sequence[int], texts: Sequence[bytes]) -> None: ...

    def score(self, tokens: Sequence[int], first: int) -> Iterator[Scored]: ...


class EngineSide:
    """A model that scores the text now, `step` tokens per forward."""

    def __init__(self, name: str, model: LoadedModel, step: int = PIECE):
        self.name, self.model, self.step, self.first = name, model, step, 1
        served = address.is_address(model.name)
        self.format = None if served else str(model.engine.dtype).removeprefix("torch.")

    def check(self, tokens: Sequence[int], texts: Sequence[bytes]) -> None:
        """Raises Refusal with one sentence if the model has other tokens, or the text does not fit."""
        engine = self.model.engine
        for token, text in zip(tokens, texts, strict=True):
            own = self.model.bytes_of(token) if 0 <= token < engine.vocabulary else None
            if own != text:
                raise Refusal(
                    f"The text's token {token} is {text!r}, and {self.name} has "
                    + ("no such token" if own is None else f"{own!r} under this number")
                    + "; both engines must have the same tokens."
                )
        if len(tokens) > self.model.context:
            raise Refusal(
                f"The text has {len(tokens):,} tokens, but {self.name} reads at most "
                f"{self.model.context:,}; shorten it."
            )

    def score(self, tokens: Sequence[int], first: int) -> Iterator[Scored]:
        """What it says of the tokens from `first` on. Raises Refusal with one sentence if a server fails."""
        for at, row in enumerate(rows_along(self.model, tokens, first, self.step), first):
            yield reading(row, tokens[at]), row if row.isfinite().all() else None


def rows_along(
    model: LoadedModel, tokens: Sequence[int], first: int, step: int = PIECE
) -> Iterator[torch.Tensor]:
    """The log-probabilities [V] (float64) of each token of a text from `first` on, given those before it;
    `step` tokens per forward. Raises Refusal with one sentence if a server fails.
    """
    tree = Tree([tokens[0]])
    for node, token in enumerate(tokens[1:-1]):
        tree.add(node, token)
    scorer = model.engine.attach(tree)
    try:
        for begin in range(0, len(tokens) - 1, step):
            nodes = list(range(begin, min(begin + step, len(tokens) - 1)))
            rows = in_pieces(scorer, nodes, False, lambda: None)[0].double().log_softmax(-1)
            scorer.forget(nodes)
            yield from rows[max(0, first - 1 - begin) :]
    except ServerProblem as error:
        raise Refusal(str(error)) from error
    finally:
        scorer.close()


def reading(row: torch.Tensor, token: int) -> Reading:
    """What a distribution [V] says of a token; a server's may leave tokens out (-inf)."""
    best, own = row.topk(min(TOP, len(row))), float(row[token])
    top = [one for one in zip(best.indices.tolist(), best.values.tolist(), strict=True) if one[1] > -math.inf]
    named = own > -math.inf
    rank = int((row > own).sum()) + 1 if named else None
    return Reading(own if named else None, rank, top, float(row.exp().sum()))


def sides(
    a: str | LoadedModel | Trace, b: str | LoadedModel | Trace, device: str = "auto"
) -> tuple[Side, Side]:
    """The sides that are given, see `given`. Raises Refusal with one sentence."""
    found = [given(one, device) for one in (a, b)]
    model = next((one.model for one in found if isinstance(one, EngineSide)), None)
    one, other = (one.side(model) if isinstance(one, Recording) else one for one in found)
    return one, other


def given(one: str | LoadedModel | Trace, device: str) -> EngineSide | Recording:
    """A model, a trace, or the name of a model or of a file with recorded log-probabilities. After a name
    follow options: `dtype=bfloat16`, `device=cuda`, `tokens_per_forward=1`, of a file `record=2`. Raises
    Refusal with one sentence.
    """
    if isinstance(one, Trace):
        return Recording(f"the trace of {one.title}", one)
    if not isinstance(one, str):
        return EngineSide(one.name, one)
    plain, options = (one, {}) if address.is_address(one) else with_options(one)
    if is_recording(plain):
        return recording(plain, number(options, "record", 1), options.get("dtype"))
    step = number(options, "tokens_per_forward", PIECE)
    model = load(plain, options.get("device", device), options.get("dtype", "auto"))
    return EngineSide(one, model, step)


def number(options: dict[str, str], name: str, default: int) -> int:
    """An option that is a whole number from 1. Raises Refusal with one sentence."""
    value = options.get(name, str(default))
    if not value.isdigit() or int(value) < 1:
        raise Refusal(f"{name} must be a whole number from 1, not {value!r}.")
    return int(value)


def with_options(name: str) -> tuple[str, dict[str, str]]:
    """A name and the options after it. Raises Refusal with one sentence for an unknown one."""
    plain, *given = name.split(",")
    options = dict(one.split("=", 1) for one in given if "=" in one)
    for one in given:
        if one.partition("=")[0] not in OPTIONS or "=" not in one:
            raise Refusal(f"{one!r} in {name!r} is not an option; the options are {', '.join(OPTIONS)}.")
    return plain, options


def tokens_of(
    text: str | Trace | Recording, both: Sequence[Side]
) -> tuple[list[int], Callable[[int], bytes]]:
    """The tokens of a text and the bytes of any: those of a recording, or as the first model cuts the text.
    Raises Refusal with one sentence.
    """
    model = next((one.model for one in both if isinstance(one, EngineSide)), None)
    found = text.found if isinstance(text, Recording) else text
    if isinstance(found, Trace):
        own = found.vocabulary
        spell = model.bytes_of if model else lambda token: b""
        return [*found.prompt, *found.output()], lambda token: own.get(token) or spell(token)
    if model is None:
        raise Refusal("Two recordings are compared over the text of one of them: give it as the text.")
    if isinstance(found, Answer):
        return of_answer(text.name, found, model)[0], model.bytes_of
    return model.encode(found), model.bytes_of


def text_in(name: str) -> str | Recording:
    """The recording or the text in a file; `,record=2` after its name chooses a record. Raises Refusal with
    one sentence.
    """
    plain, options = with_options(name)
    if is_recording(plain):
        return recording(plain, number(options, "record", 1))
    return read_text(Path(plain))
