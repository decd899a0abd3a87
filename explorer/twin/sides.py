"""The two sides of a comparison: an engine that scores the text now, or log-probabilities that were recorded.

A side says what it says of the tokens one by one, so that no more than a piece of whole distributions is held
at a time. Knows models and traces, no pictures.
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
from decoders.trace import trace as traces
from decoders.trace.events import Commit, Distribution
from decoders.trace.trace import Trace
from explorer.text_file import read_text
from visualizers.analysis.twin import ROUNDING, TOP, Reading

TRACES = (".json", ".json.gz")
OPTIONS = ("dtype", "device", "tokens_per_forward")
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
            own = self.model.bytes_of(token) if token < engine.vocabulary else None
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
        tree = Tree([tokens[0]])
        for node, token in enumerate(tokens[1:-1]):
            tree.add(node, token)
        scorer = self.model.engine.attach(tree)
        try:
            for begin in range(0, len(tokens) - 1, self.step):
                nodes = list(range(begin, min(begin + self.step, len(tokens) - 1)))
                rows = in_pieces(scorer, nodes, False, lambda: None)[0].double().log_softmax(-1)
                scorer.forget(nodes)
                for node, row in zip(nodes, rows, strict=True):
                    if node + 1 >= first:
                        yield reading(row, tokens[node + 1]), row if row.isfinite().all() else None
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


class RecordedSide:
    """The log-probabilities that a trace holds for the tokens that it wrote."""

    def __init__(self, name: str, trace: Trace, dtype: str | None = None):
        self.name, self.trace, self.format = name, trace, dtype
        self.first = len(trace.prompt)
        self.tokens = [*trace.prompt, *trace.output()]
        self.recorded = recorded(trace)

    def check(self, tokens: Sequence[int], texts: Sequence[bytes]) -> None:
        """Raises Refusal with one sentence if it was recorded for another text."""
        if list(tokens) != self.tokens:
            raise Refusal(f"{self.name} was recorded for another text; give that text: --text {self.name}.")

    def score(self, tokens: Sequence[int], first: int) -> Iterator[Scored]:
        """What it says of the tokens from `first` on."""
        return ((one, None) for one in self.recorded[first - self.first :])


def recorded(trace: Trace) -> list[Reading]:
    """A reading for each token that a trace wrote: of the target's distribution where it was recorded, else
    of the token's own log-probability alone.
    """
    index, rows, found = trace.index(), {}, []
    for step in trace.steps:
        for event in step.events:
            match event:
                case Distribution(view="target"):
                    rows.setdefault(event.node, event)
                case Commit():
                    for node, logprob in zip(event.nodes, event.logprobs, strict=True):
                        row = rows.get(index.parent[node])
                        found.append(recorded_reading(index.token[node], logprob, row))
    return found


def recorded_reading(token: int, logprob: float | None, row: Distribution | None) -> Reading:
    """What was recorded of a token."""
    top = [] if row is None else [(int(one), value) for one, value in row.top]
    rank = next((at for at, (one, _) in enumerate(top, 1) if one == token), None)
    own = top[rank - 1][1] if logprob is None and rank else logprob
    return Reading(own, rank, top, math.fsum(math.exp(min(0.0, value)) for _, value in top))


def is_trace(name: str) -> bool:
    """Whether a name means a recorded trace: a file that is one by its suffix."""
    return name.endswith(TRACES) and Path(name).is_file()


def side(given: str | LoadedModel | Trace, device: str = "auto") -> Side:
    """The side that is given: a model, a trace, or the name of either. After a name follow options:
    `dtype=bfloat16`, `device=cuda`, `tokens_per_forward=1`. Raises Refusal with one sentence.
    """
    if isinstance(given, Trace):
        return RecordedSide(f"the trace of {given.title}", given)
    if not isinstance(given, str):
        return EngineSide(given.name, given)
    plain, options = (given, {}) if address.is_address(given) else with_options(given)
    if is_trace(plain):
        return RecordedSide(plain, traces.load(plain), known_format(options.get("dtype")))
    step = options.get("tokens_per_forward", str(PIECE))
    if not step.isdigit() or int(step) < 1:
        raise Refusal(f"tokens_per_forward must be a whole number from 1, not {step!r}.")
    model = load(plain, options.get("device", device), options.get("dtype", "auto"))
    return EngineSide(given, model, int(step))


def with_options(name: str) -> tuple[str, dict[str, str]]:
    """A name and the options after it. Raises Refusal with one sentence for an unknown one."""
    plain, *given = name.split(",")
    options = dict(one.split("=", 1) for one in given if "=" in one)
    for one in given:
        if one.partition("=")[0] not in OPTIONS or "=" not in one:
            raise Refusal(f"{one!r} in {name!r} is no option; the options are {', '.join(OPTIONS)}.")
    return plain, options


def known_format(name: str | None) -> str | None:
    """A number format of `ROUNDING`, or None. Raises Refusal with one sentence for another."""
    if name is not None and name not in ROUNDING:
        raise Refusal(f"There is no number format {name!r}; choose one of {', '.join(ROUNDING)}.")
    return name


def tokens_of(text: str | Trace, sides: Sequence[Side]) -> tuple[list[int], Callable[[int], bytes]]:
    """The tokens of a text and the bytes of any: those of a trace, or as the first engine cuts the text.
    Raises Refusal with one sentence.
    """
    model = next((one.model for one in sides if isinstance(one, EngineSide)), None)
    if isinstance(text, Trace):
        vocabulary = text.vocabulary
        bytes_of = model.bytes_of if model else lambda token: vocabulary.get(token, b"")
        return [*text.prompt, *text.output()], bytes_of
    if model is None:
        raise Refusal("Two recordings are compared over the text of one of them: give it as the text.")
    return model.encode(text), model.bytes_of


def text_in(file: Path) -> str | Trace:
    """The trace or the text in a file. Raises Refusal with one sentence."""
    return traces.load(file) if is_trace(str(file)) else read_text(file)
