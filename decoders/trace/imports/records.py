"""Files of many records, one JSON value a line or in a list, and folders of files: a table of what is in
them, worst first, of which each can be opened.
"""

from dataclasses import dataclass
from typing import Any

from decoders.refusal import Refusal
from decoders.trace import json_file
from decoders.trace.imports import dialects, ollama
from decoders.trace.imports.answer import Answer
from decoders.trace.imports.checks import judged
from decoders.trace.imports.writer import trace_of
from decoders.trace.scores import ScoreName
from decoders.trace.trace import Trace, from_json
from decoders.trace.trust import Trust

MAX_RECORDS = 2000
MAX_NAME = 80  # characters
OWN = {"version", "strategy", "steps"}  # fields of a trace of ours


@dataclass(frozen=True)
class Record:
    """A JSON value of a file, under a name."""

    name: str
    value: Any

    def trace(self) -> Trace:
        """Its trace. Raises Refusal with one sentence."""
        return from_json(self.value) if is_own(self.value) else trace_of(dialects.read(self.value))


@dataclass(frozen=True)
class Row:
    """A row of the table: what it says about the record at `place`. score: a reward, or 1 for a right answer;
    logprob: mean of the tokens; divergence: the largest between rollout and trainer at a token; problem: why
    it cannot be opened.
    """

    place: int
    name: str
    dialect: str = ""
    tokens: int = 0
    score: float | None = None
    logprob: float | None = None
    divergence: float | None = None
    trust: Trust | None = None
    problem: str | None = None

    @property
    def badness(self) -> tuple:
        """Sorts the worst first: what cannot be opened, what is untrusted, the lowest score, the largest
        divergence, the lowest mean log-probability.
        """
        return (
            self.problem is None,
            self.trust is None or self.trust.trusted,
            self.score if self.score is not None else float("inf"),
            -(self.divergence or 0.0),
            self.logprob if self.logprob is not None else 0.0,
        )


def records_of(data: bytes, name: str = "") -> list[Record] | None:
    """The records of a file; None for a file of one value. Raises Refusal with one sentence for too many.

    Lines that a server streamed are no records: they are one answer.
    """
    values = json_file.read_lines(data)
    if values is None:
        values = list_in(json_file.unzipped(data))
        if not values or not all(dialects.dialect_of(one) or is_own(one) for one in values):
            return None
    values = ollama.merged(values)
    if len(values) < 2:
        return [Record(name or "1", value) for value in values] or None
    if len(values) > MAX_RECORDS:
        raise Refusal(f"This file has {len(values):,} records, and {MAX_RECORDS:,} can be read; cut it.")
    before = f"{name} " if name else ""
    return [Record(f"{before}{title(value, at)}"[:MAX_NAME], value) for at, value in enumerate(values, 1)]


def list_in(data: bytes) -> list | None:
    """The values of a file that is one list, or an object with `samples`, as slime has it; None for any other
    value. The reader of single values says what is wrong with that.
    """
    if not (data.lstrip()[:1] == b"[" or data.lstrip()[:1] == b"{" and b'"samples"' in data):
        return None
    try:
        value = json_file.read_json(data)
    except Refusal:
        return None
    found = value.get("samples") if isinstance(value, dict) else value
    return found if isinstance(found, list) else None


def title(value: Any, at: int) -> str:
    """A name for a record: its number in the file, and the number that it gives itself."""
    for key in ("doc_id", "export_sequence_idx", "index", "id"):
        if isinstance(value, dict) and isinstance(own := value.get(key), int | str):
            return f"{at} ({key} {own})"
    return str(at)


def is_own(value: Any) -> bool:
    """Whether a JSON value looks like a trace of ours."""
    return isinstance(value, dict) and value.keys() >= OWN


def table(records: list[Record]) -> list[Row]:
    """A row for each record, worst first."""
    rows = [row_of(place, record) for place, record in enumerate(records)]
    return sorted(rows, key=lambda row: row.badness)


def row_of(place: int, record: Record) -> Row:
    """The row of one record; its problem if it cannot be opened."""
    try:
        if is_own(record.value):
            return of_trace(place, record, from_json(record.value))
        answer = dialects.read(record.value)
        return of_answer(place, record, answer, judged(answer))
    except Refusal as error:
        return Row(place, record.name, problem=str(error))


def of_answer(place: int, record: Record, answer: Answer, trust: Trust) -> Row:
    """The row of an answer."""
    apart = [value for value in answer.measures.get(ScoreName.DIVERGENCE, ()) if value is not None]
    best = max((option.logprob for option in answer.options), default=None)
    mean = -trust.surprise / trust.numbered if trust.numbered else best
    return Row(
        place,
        record.name,
        answer.dialect,
        len(answer.tokens) or len(answer.options),
        answer.score,
        mean,
        max(apart, default=None),
        trust,
    )


def of_trace(place: int, record: Record, trace: Trace) -> Row:
    """The row of a trace of ours."""
    tokens, costs = len(trace.output()), trace.costs
    trust = Trust.from_json(trace.trust) if trace.trust else None
    mean = costs.logprob / tokens if tokens else None
    return Row(place, record.name, trace.strategy, tokens, None, mean, None, trust)
