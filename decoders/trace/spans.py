"""Spans of a text by delimiters: reasoning between `<think>` and `</think>`, the answer after it, tool calls.

A fold over the bytes of its tokens that never looks ahead: a delimiter may be cut into several tokens, and
all of them but the last get their span only once the delimiter is complete.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from decoders.refusal import Refusal

MOST = 8  # pairs of delimiters
LONGEST = 60  # characters of a delimiter
PARAMETER = "span_delimiters"  # of a lane: its own delimiters, as they are typed
FORM = "reasoning: <think> </think>, tool call: <tool_call> </tool_call>"


class Part(StrEnum):
    """What a span is; the value is how people read it."""

    REASONING = "reasoning"
    ANSWER = "answer"  # what follows reasoning, outside of all delimiters
    TOOL_CALL = "tool call"


@dataclass(frozen=True, slots=True)
class Delimiters:
    """What opens a span and what closes it; both belong to it."""

    part: Part
    opens: str
    closes: str

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.part}: {self.opens} {self.closes}"


DEFAULT = (
    Delimiters(Part.REASONING, "<think>", "</think>"),
    Delimiters(Part.TOOL_CALL, "<tool_call>", "</tool_call>"),
)
# Tags of chat templates: <think>, [THINK], ◁think▷, <|START_THINKING|>, <|tool_call_begin|> ...
TAG = re.compile(
    r"(<\|?|\[|◁)(start_|begin_|begin_of_)?([\w:]*(?:think|thinking|thought|reason|reasoning)|tool_calls?|"
    r"function_call)(_begin|_start)?(\|?>|\]|▷)",
    re.IGNORECASE,
)
CLOSED_BY = {"start_": "end_", "begin_": "end_", "begin_of_": "end_of_", "_begin": "_end", "_start": "_end"}


def parse(typed: str) -> tuple[Delimiters, ...]:
    """Delimiters as they were typed: pairs separated by commas. A name in front, such as `tool call:`, says
    what a pair delimits; without a name it is reasoning. Raises Refusal with one sentence.
    """
    found = []
    for piece in filter(None, (one.strip() for one in typed.split(","))):
        part = next((part for part in Part if piece.lower().startswith(part + ":")), None)
        ends = piece[len(part) + 1 if part else 0 :].split()
        if part is Part.ANSWER or len(ends) != 2 or len(max(ends, key=len)) > LONGEST:
            raise Refusal(f"{PARAMETER} takes pairs such as {FORM}, not {piece[:LONGEST]!r}.")
        found.append(Delimiters(part or Part.REASONING, *ends))
    if len(found) > MOST:
        raise Refusal(f"{PARAMETER} takes {MOST} pairs at most, not {len(found)}.")
    return tuple(found)


def of_template(template: str) -> tuple[Delimiters, ...]:
    """The pairs of delimiters that a chat template contains, opening and closing one, without those of
    DEFAULT.
    """
    found: dict[Delimiters, None] = {}
    for match in TAG.finditer(template):
        left, begin, name, end, right = (piece or "" for piece in match.groups())
        closes = f"{left}{closed_by(begin)}{'' if begin or end else '/'}{name}{closed_by(end)}{right}"
        part = Part.TOOL_CALL if name.lower().startswith(("tool", "function")) else Part.REASONING
        made = Delimiters(part, match[0], closes)
        if closes in template and made not in DEFAULT:
            found[made] = None
    return tuple(found)[:MOST]


def closed_by(word: str) -> str:
    """What stands in a closing tag for `start_` and the like, in the same case."""
    other = CLOSED_BY.get(word.lower(), "")
    return other.upper() if word.isupper() else other


def typed_for(template: str) -> str:
    """The delimiters of a model with this chat template, as they are typed; "" where DEFAULT has all."""
    own = of_template(template)
    return ", ".join(map(str, (*DEFAULT, *own)[:MOST])) if own else ""


def delimiters_of(parameters: Mapping[str, Any]) -> tuple[Delimiters, ...]:
    """Those of a lane with these parameters; DEFAULT where it has none that can be read."""
    typed = parameters.get(PARAMETER)
    try:
        return (parse(typed) if isinstance(typed, str) else ()) or DEFAULT
    except Refusal:  # of a file from elsewhere
        return DEFAULT


class Spans:
    """Reads a text token by token. parts: what each token belongs to, None outside of all spans; spent:
    tokens of reasoning so far, without delimiters.
    """

    def __init__(self, delimiters: Iterable[Delimiters] = DEFAULT, prompt: Iterable[bytes] = ()):
        """prompt: the tokens before the text, which may leave a span open."""
        self.delimiters = tuple(delimiters)
        self.opened: Delimiters | None = None
        self.parts: list[Part | None] = []
        self.began = 0  # the token behind the newest opening delimiter
        self.closed_spent = 0  # reasoning of spans that are closed
        self._thought = False
        self._tail = b""  # the last bytes, which may begin a delimiter
        self._owners: list[int] = []  # the token of each of them
        longest = max((len(end.encode()) for one in delimiters for end in (one.opens, one.closes)), default=0)
        self._kept = max(longest - 1, 0)
        for piece in prompt:
            self.feed(piece)
        self.prompt = len(self.parts)
        self.parts = [None if part is Part.ANSWER else part for part in self.parts]  # of earlier turns
        self._thought = False

    @property
    def reasoning(self) -> bool:
        """Whether a span of reasoning is open."""
        return self.opened is not None and self.opened.part is Part.REASONING

    @property
    def open_spent(self) -> int:
        """Tokens since the open span of reasoning began; 0 if none is open."""
        return len(self.parts) - self.began if self.reasoning else 0

    @property
    def spent(self) -> int:
        """Tokens of reasoning so far, without delimiters."""
        return self.closed_spent + self.open_spent

    def feed(self, piece: bytes) -> list[int]:
        """Reads the next token; returns the tokens whose part is new, itself included, counted from 0."""
        at = len(self.parts)
        self.parts.append(None)
        self._tail, self._owners = self._tail + piece, [*self._owners, *[at] * len(piece)]
        changed = {at}
        self.parts[at] = self._part()
        while (end := self._next_end()) is not None:
            changed |= self._cross(*end)
        keep = min(self._kept, len(self._tail))
        self._tail, self._owners = (
            self._tail[len(self._tail) - keep :],
            self._owners[len(self._owners) - keep :],
        )
        return sorted(changed)

    def _part(self) -> Part | None:
        if self.opened:
            return self.opened.part
        return Part.ANSWER if self._thought else None

    def _next_end(self) -> tuple[int, int, Delimiters] | None:
        """The first delimiter in the tail that counts here: where it begins and ends."""
        wanted = [self.opened] if self.opened else self.delimiters
        ends = [(one, (one.closes if self.opened else one.opens).encode()) for one in wanted]
        found = [(at, at + len(end), one) for one, end in ends if (at := self._tail.find(end)) >= 0]
        return min(found, key=lambda end: end[0], default=None)

    def _cross(self, start: int, stop: int, one: Delimiters) -> set[int]:
        """Opens or closes a span at a delimiter; returns the tokens that it is made of."""
        own = set(self._owners[start:stop])
        if self.opened:
            if self.reasoning:
                self.closed_spent += max(0, min(own) - self.began)
                self._thought = True
            self.opened = None
        else:
            self.opened, self.began = one, max(own) + 1
        for token in own:
            self.parts[token] = one.part
        behind = {token for token in self._owners[stop:] if token not in own}
        for token in behind:  # of a token that goes on behind the delimiter, the delimiter decides
            self.parts[token] = self._part()
        self._tail, self._owners = self._tail[stop:], self._owners[stop:]
        return own | behind
