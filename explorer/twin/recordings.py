"""Recorded log-probabilities as a side of a comparison: from a trace of ours, or from an answer or a rollout
of another program.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal
from decoders.trace import json_file
from decoders.trace.events import Commit, Distribution
from decoders.trace.imports import dialects, records
from decoders.trace.imports.answer import Answer, Listed
from decoders.trace.trace import Trace, from_json
from visualizers.analysis.twin import ROUNDING, Reading

SUFFIXES = (".json", ".json.gz", ".jsonl")


class RecordedSide:
    """Log-probabilities that a file holds for the last of its `tokens`, `first` and those after it."""

    def __init__(
        self, name: str, tokens: list[int], first: int, recorded: list[Reading], dtype: str | None = None
    ):
        self.name, self.tokens, self.first, self.recorded, self.format = name, tokens, first, recorded, dtype

    def check(self, tokens: Sequence[int], texts: Sequence[bytes]) -> None:
        """Raises Refusal with one sentence if it was recorded for another text."""
        if list(tokens) != self.tokens:
            raise Refusal(f"{self.name} was recorded for another text; give that text: --text {self.name}.")

    def score(self, tokens: Sequence[int], first: int) -> Iterator[tuple[Reading, None]]:
        """What it says of the tokens from `first` on."""
        return ((one, None) for one in self.recorded[first - self.first :])


@dataclass(frozen=True)
class Recording:
    """What a file recorded, under its name: a trace, or the answer of another program, whose tokens are found
    in the vocabulary of the other side's model.
    """

    name: str
    found: Trace | Answer
    format: str | None = None

    def side(self, model: LoadedModel | None) -> RecordedSide:
        """Its side. Raises Refusal with one sentence."""
        if isinstance(self.found, Trace):
            tokens = [*self.found.prompt, *self.found.output()]
            return RecordedSide(self.name, tokens, len(self.found.prompt), of_trace(self.found), self.format)
        if model is None:
            raise Refusal(f"{self.name} has no vocabulary; compare it with a model.")
        return RecordedSide(self.name, *of_answer(self.name, self.found, model), self.format)


def of_trace(trace: Trace) -> list[Reading]:
    """A reading for each token that a trace wrote: of the target's distribution where it was recorded, else
    of the token's own log-probability alone.
    """
    index, rows, found = trace.index(), {}, []
    for step in trace.steps:
        for event in step.events:
            match event:
                case Distribution(view="target"):
                    rows.setdefault(event.node, event.top)
                case Commit():
                    for node, logprob in zip(event.nodes, event.logprobs, strict=True):
                        top = [(int(token), value) for token, value in rows.get(index.parent[node], ())]
                        found.append(reading(index.token[node], logprob, top))
    return found


def of_answer(name: str, answer: Answer, model: LoadedModel) -> tuple[list[int], int, list[Reading]]:
    """The tokens of an answer, its prompt included, in a model's vocabulary, the place of the first that was
    written, and a reading of each written one. Raises Refusal with one sentence.
    """
    if all(one.own.logprob is None for one in answer.tokens):
        raise Refusal(f"{name} has no log-probabilities of tokens.")
    if answer.ids is not None:
        first = len(answer.ids) - len(answer.tokens)
        own = [one.own.logprob for one in answer.tokens]
        pairs = zip(answer.ids[first:], own, strict=True)
        return list(answer.ids), first, [reading(token, logprob, []) for token, logprob in pairs]
    if answer.prompt is None:
        raise Refusal(f"{name} has no prompt, so what stood before its tokens is not known.")
    known: dict[bytes, int] = {}
    for token in range(model.engine.vocabulary):
        known.setdefault(model.bytes_of(token), token)
    if lacking := [one.own.piece for one in answer.tokens if one.own.piece not in known]:
        raise Refusal(f"{name} has the token {lacking[0]!r}, which {model.name} lacks.")
    prompt = model.encode(answer.prompt)
    ids = [known[one.own.piece] for one in answer.tokens]
    readings = [
        reading(token, one.own.logprob, in_vocabulary(one.top, known))
        for token, one in zip(ids, answer.tokens, strict=True)
    ]
    return [*prompt, *ids], len(prompt), readings


def in_vocabulary(top: Sequence[Listed], known: dict[bytes, int]) -> list[tuple[int, float]]:
    """Listed tokens by their numbers; of several with one text the most likely."""
    found: dict[int, float] = {}
    for one in top:
        if one.piece in known:
            found.setdefault(known[one.piece], one.logprob)
    return list(found.items())


def reading(token: int, logprob: float | None, top: list[tuple[int, float]]) -> Reading:
    """What was recorded of a token."""
    rank = next((at for at, (one, _) in enumerate(top, 1) if one == token), None)
    own = top[rank - 1][1] if logprob is None and rank else logprob
    return Reading(own, rank, top, math.fsum(math.exp(min(0.0, value)) for _, value in top))


def is_recording(name: str) -> bool:
    """Whether a name means a file with recorded log-probabilities: one that is there, by its suffix."""
    return name.endswith(SUFFIXES) and Path(name).is_file()


def recording(name: str, record: int = 1, dtype: str | None = None) -> Recording:
    """What is in a file; of several records the one with this number, from 1. Raises Refusal with one
    sentence.
    """
    data = Path(name).read_bytes()
    several = records.records_of(data) or [records.Record(name, json_file.read_json(data))]
    if record > len(several):
        raise Refusal(f"{name} has {len(several):,} records; choose one of them: {name},record=1.")
    value = several[record - 1].value
    found = from_json(value) if records.is_own(value) else dialects.read(value)
    return Recording(name, found, known_format(dtype))


def known_format(name: str | None) -> str | None:
    """A number format of `ROUNDING`, or None. Raises Refusal with one sentence for another."""
    if name is not None and name not in ROUNDING:
        raise Refusal(f"There is no number format {name!r}; choose one of {', '.join(ROUNDING)}.")
    return name
