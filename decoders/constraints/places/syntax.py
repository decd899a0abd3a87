"""The parts of a grammar or regular expression, each with its place in the typed text, and sets of characters
as ranges of code points.
"""

from dataclasses import dataclass
from functools import cache

Span = tuple[int, int]  # first character of the typed text, and the one after the last
Ranges = tuple[tuple[int, int], ...]  # code points from, to, both included; sorted, none touches another
LAST = 0x10FFFF
PLANE = 0x10000  # of the named classes, the characters that are looked through


class Unread(ValueError):
    """The typed text has a part that is not supported here; the message is one sentence. The engine may
    support it.
    """


@dataclass(frozen=True)
class Chars:
    """One character of a set. `span`: the part of the typed text that is still to come while this character
    is awaited.
    """

    ranges: Ranges
    span: Span


@dataclass(frozen=True)
class Call:
    """A rule by its name."""

    rule: str
    span: Span


@dataclass(frozen=True)
class Sequence:
    parts: "tuple[Part, ...]"


@dataclass(frozen=True)
class Choice:
    parts: "tuple[Part, ...]"


@dataclass(frozen=True)
class Repeat:
    """`max_count` None: without end."""

    part: "Part"
    min_count: int
    max_count: int | None


Part = Chars | Call | Sequence | Choice | Repeat


def ranges(pairs: list[tuple[int, int]]) -> Ranges:
    """Pairs in any order as ranges."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(some: Ranges) -> Ranges:
    """All other characters."""
    left, at = [], 0
    for low, high in some:
        left += [(at, low - 1)] if at < low else []
        at = high + 1
    return tuple(left + ([(at, LAST)] if at <= LAST else []))


def holds(some: Ranges, code: int) -> bool:
    """Whether a code point is in a set."""
    return any(low <= code <= high for low, high in some)


@cache
def class_of_letter(letter: str) -> Ranges:
    r"""The set of `\d`, `\w`, `\s` or of their capitals."""
    if letter.isupper():
        return complement(class_of_letter(letter.lower()))
    test = {"d": str.isdecimal, "s": str.isspace, "w": lambda c: c.isalnum() or c == "_"}[letter]
    return ranges([(code, code) for code in range(PLANE) if test(chr(code))])


ANY_IN_LINE = complement(ranges([(10, 10)]))


def literal(characters: list[tuple[str, int, int]], end: int) -> Part:
    """A text, given as (character, from, to) of the typed text, which ends at `end`. While one of its
    characters is awaited, it and all after it are still to come.
    """
    return Sequence(tuple(Chars(((ord(c), ord(c)),), (low, end)) for c, low, _ in characters))
