"""What a file of another program says, whatever its dialect: the tokens that were written, the likely ones
that it lists beside them, and its counts.

Servers name tokens by their texts, which several tokens may share: those that are not whole characters, or,
in some tokenizers, a word with and without the space in front. Such tokens have the same bytes and count as
different ones.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from decoders.refusal import Refusal
from decoders.trace.trust import SCALES

MAX_TOKENS = 4096
MAX_LISTED = 100_000  # tokens that are listed beside those that were written, of all places together
MAX_DRAFTED = 4 * MAX_TOKENS  # tokens of all rounds together
MAX_NAME = 60  # characters of a model's name in a title
MAX_PROMPT = 20_000  # characters of a prompt
# OpenAI and vLLM write -9999 for a token that has no probability or is not among the most likely ones,
# llama.cpp the lowest number of its format.
NO_LOGPROB = -9000.0
# By which rounding may raise a probability, or a sum of them, above 1: a logarithm with two decimals, or in
# bfloat16, is off by up to half a hundredth.
SLACK = 0.01
LOGPROBS, PROBABILITIES, NO_SCALE = SCALES


class Listed(NamedTuple):
    """A token that the file lists: its bytes, which of the tokens with these bytes it is at its place, from
    0, and its log-probability.
    """

    piece: bytes
    which: int
    logprob: float


class Unlisted(NamedTuple):
    """A token that was written but is not listed; its log-probability may be left out."""

    piece: bytes
    which: int
    logprob: float | None


class Written(NamedTuple):
    """A token that was written, the most likely tokens at its place, most likely first, whether one of them
    was listed twice, and what the draft had listed there, if the file says so.
    """

    own: Listed | Unlisted
    top: list[Listed]
    twice: bool = False
    draft: list[Listed] | None = None


class Option(NamedTuple):
    """A whole text that was scored and not written: its log-probability, summed over its tokens, and whether
    greedy decoding would have written it.
    """

    text: str
    logprob: float
    greedy: bool


@dataclass(frozen=True)
class Counts:
    """What a file counts, besides its tokens; None for what it does not."""

    tokens: int | None = None  # that were written
    drafts: int | None = None  # rounds
    drafted: int | None = None
    accepted: int | None = None
    histogram: tuple[int, ...] | None = None  # entry k: rounds that accepted k tokens
    per_place: tuple[int, ...] | None = None  # entry k: rounds that accepted place k of their draft


@dataclass(frozen=True)
class Answer:
    """A server's answer, or a record of an evaluation or a rollout."""

    dialect: str
    tokens: list[Written] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)  # instead of tokens
    model: str | None = None
    prompt: str | None = None
    ids: tuple[int, ...] | None = None  # of the prompt and the tokens, where the file names tokens by them
    text: str | None = None  # the whole text, if the file has it beside its tokens
    spells_more: bool = False  # the tokens may spell more than the text: reasoning that stands elsewhere
    scale: str = LOGPROBS
    processed: bool | None = None
    counts: Counts = Counts()
    rounds: list[tuple[int, int]] = field(default_factory=list)  # (drafted, accepted)
    draft_places: int | None = None  # places for which the draft's probabilities are listed
    measures: dict[str, list[float | None]] = field(default_factory=dict)  # by name, one for each token
    score: float | None = None  # a reward, or whether an evaluation's answer was right
    notes: list[str] = field(default_factory=list)


def tops(named: Iterable[tuple[bytes, float | None]]) -> tuple[list[Listed], bool]:
    """Listed tokens, most likely first, and whether one was listed twice."""
    known = [(name, value) for name, value in named if value is not None]
    top: list[Listed] = []
    count: dict[bytes, int] = {}
    for name, value in sorted(dict.fromkeys(known), key=lambda pair: -pair[1]):
        top.append(Listed(name, count.get(name, 0), value))
        count[name] = top[-1].which + 1
    return top, len(set(known)) < len(known)


def written(name: bytes, value: float | None, named: Iterable[tuple[bytes, float | None]]) -> Written:
    """A token of these bytes and this log-probability, with the likely ones at its place."""
    top, twice = tops(named)
    same = [one for one in top if one.piece == name]
    if value is not None and (alike := [one for one in same if near(one.logprob, value)]):
        return Written(min(alike, key=lambda one: abs(one.logprob - value)), top, twice)
    return Written(Unlisted(name, len(same), value), top, twice)


def near(a: float, b: float) -> bool:
    """Whether two log-probabilities differ by rounding only."""
    return abs(math.exp(min(a, 1.0)) - math.exp(min(b, 1.0))) <= SLACK


def piece(entry: dict) -> bytes:
    """The bytes of a token; servers may leave them out."""
    given = entry.get("bytes")
    if given is None:
        return entry["token"].encode()
    if not isinstance(given, list):  # of a number, `bytes` makes as many zeros
        raise TypeError(given)
    return bytes(given)


def nats(value: Any) -> float | None:
    """A log-probability in nats; None if there is none. Raises TypeError for what is no number."""
    if value is None:  # what some servers write for minus infinity
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(value)
    return float(value) if value > NO_LOGPROB else None


def log_of(value: Any) -> float | None:
    """The log-probability of a probability; None for 0. Raises TypeError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise TypeError(value)
    return math.log(value) if value else None


def whole(values: Any) -> list[int]:
    """Counts of at most MAX_TOKENS each, as many as there can be tokens."""
    if len(values) > MAX_TOKENS or not all(
        type(value) is int and 0 <= value <= MAX_TOKENS for value in values
    ):
        raise TypeError(values)
    return values


def count(value: Any) -> int | None:
    """A count; None for what is none."""
    return value if type(value) is int and 0 <= value < 2**53 else None


def inner(record: dict, key: str) -> dict:
    """An object within another; empty if there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def named(record: dict, *keys: str) -> str | None:
    """The first of these fields that is a text and not empty."""
    return next((value for key in keys if isinstance(value := record.get(key), str) and value), None)


def check_size(tokens: int, listed: int) -> None:
    """Raises Refusal with one sentence if an answer has too few or too many tokens, or lists too many."""
    if not 1 <= tokens <= MAX_TOKENS:
        raise Refusal(f"An answer of 1 to {MAX_TOKENS:,} tokens can be read; this one has {tokens:,}.")
    if listed > MAX_LISTED:
        raise Refusal(
            f"This answer lists {listed:,} likely tokens, and {MAX_LISTED:,} can be read; ask for fewer "
            "top_logprobs."
        )
