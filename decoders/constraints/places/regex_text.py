"""Reads a regular expression with the place of each of its parts. Reads the syntax that all regex engines
share; syntax of some engines (look-around, back references, Unicode classes) is Unread.
"""

import re

from decoders.constraints.places.syntax import (
    ANY_IN_LINE,
    Chars,
    Choice,
    Part,
    Ranges,
    Repeat,
    Sequence,
    Unread,
    class_of_letter,
    complement,
    ranges,
)

CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
GROUP = re.compile(r"\(\?(?::|P?<\w+>)")
COUNTS = re.compile(r"\{(\d+)(,?)(\d*)\}")
CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|[xu]\{([0-9a-fA-F]+)\}")


def read_regex(typed: str, start: int = 0, stop: int | None = None) -> Part:
    """The expression between two places of a typed text. Raises Unread."""
    reader = Reader(typed, start, len(typed) if stop is None else stop)
    part = reader.choice()
    if reader.at < reader.stop:
        raise Unread(f"An unmatched {reader.peek()!r} is not supported here.")
    return part


class Reader:
    """A place in the text, and what can be read there."""

    def __init__(self, typed: str, start: int, stop: int):
        self.typed, self.at, self.stop = typed, start, stop

    def peek(self) -> str:
        return self.typed[self.at] if self.at < self.stop else ""

    def choice(self) -> Part:
        """Alternatives, up to a closing bracket or the end."""
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.peek() and self.peek() not in "|)":
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Sequence(following(parts))

    def repeated(self, part: Part) -> Part:
        """The part with the quantifiers after it; a lazy quantifier allows the same texts."""
        while (sign := self.peek()) and sign in "*+?{":
            counts = COUNTS.match(self.typed, self.at, self.stop)
            if sign == "{" and not counts:
                raise Unread("A brace without a count is not supported here.")
            self.at = counts.end() if sign == "{" else self.at + 1
            min_count, max_count = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or numbers(counts)
            part = Repeat(part, min_count, max_count)
            if self.peek() == "?":
                self.at += 1
        return part

    def atom(self) -> Part:
        start, sign = self.at, self.peek()
        if sign == "(":
            return self.group()
        self.at += 1
        match sign:
            case "[":
                some = self.characters()
            case ".":
                some = ANY_IN_LINE
            case "\\":
                some = self.escaped()
            case "^" | "$" | "*" | "+" | "?" | "{":
                raise Unread(f"A {sign!r} at this place is not supported here.")
            case _:
                some = ranges([(ord(sign), ord(sign))])
        return Chars(some, (start, self.at))

    def group(self) -> Part:
        named_or_not = GROUP.match(self.typed, self.at, self.stop)
        if not named_or_not and self.typed.startswith("(?", self.at):
            raise Unread("A group that begins with (? is not supported here.")
        self.at = named_or_not.end() if named_or_not else self.at + 1
        part = self.choice()
        if self.peek() != ")":
            raise Unread("A group without an end is not supported here.")
        self.at += 1
        return part

    def escaped(self) -> Ranges:
        """The set of what stands after a backslash."""
        sign = self.peek()
        if code := CODE.match(self.typed, self.at, self.stop):
            self.at = code.end()
            number = int(next(filter(None, code.groups())), 16)
            return ranges([(number, number)])
        self.at += 1
        if sign and sign in "dwsDWS":
            return class_of_letter(sign)
        if not sign or (sign.isalnum() and sign not in CONTROL):
            raise Unread(f"\\{sign} is not supported here.")
        return ranges([(ord(CONTROL.get(sign, sign)),) * 2])

    def characters(self) -> Ranges:
        """The set of a class, after its opening bracket."""
        inverted = self.peek() == "^"
        self.at += inverted
        first, some = self.at, []
        while self.peek() != "]" or self.at == first:
            low = self.member()
            if self.peek() == "-" and self.typed[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                low = ((low[0][0], self.member()[-1][1]),)
            some += low
        self.at += 1
        return complement(ranges(some)) if inverted else ranges(some)

    def member(self) -> Ranges:
        sign = self.peek()
        self.at += 1
        if not sign or sign == "[" or self.typed.startswith(("&&", "--", "~~"), self.at - 1):
            raise Unread("A class with an operation or without an end is not supported here.")
        return self.escaped() if sign == "\\" else ranges([(ord(sign), ord(sign))])


def numbers(counts: re.Match) -> tuple[int, int | None]:
    """How often, of a match of COUNTS."""
    min_count = int(counts[1])
    return min_count, (int(counts[3]) if counts[3] else None) if counts[2] else min_count


def following(parts: list[Part]) -> tuple[Part, ...]:
    """Single characters that follow each other as one text: while one is awaited, the rest is to come."""
    grouped: list[Part] = []
    for part in reversed(parts):
        if single(part) and grouped and single(grouped[-1]) and part.span[1] == grouped[-1].span[0]:
            part = Chars(part.ranges, (part.span[0], grouped[-1].span[1]))
        grouped.append(part)
    return tuple(reversed(grouped))


def single(part: Part) -> bool:
    """Whether a part is one certain character."""
    return isinstance(part, Chars) and len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]
