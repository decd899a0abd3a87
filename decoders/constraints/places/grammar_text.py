"""Reads the typed text of a grammar, GBNF or Lark, with the place of each of its parts. Directives, templates
and what llguidance adds to Lark are Unread.
"""

import re
from dataclasses import dataclass

from decoders.constraints.places import regex_text
from decoders.constraints.places.syntax import (
    ANY_IN_LINE,
    Call,
    Chars,
    Choice,
    Part,
    Repeat,
    Sequence,
    Span,
    Unread,
    literal,
    ranges,
)

HEADS = {
    "gbnf": re.compile(r"^[ \t]*([A-Za-z][\w-]*)[ \t]*::=", re.MULTILINE),
    "lark": re.compile(r"^[?!]?(_*[A-Za-z]\w*)(?:\.-?\d+)?[ \t]*:|^%(\w+)", re.MULTILINE),
}
STRING = r'"(?:[^"\\\n]|\\.)*"'
WORDS = {
    "gbnf": re.compile(
        rf"(?P<text>{STRING})|(?P<class>\[(?:[^\]\\\n]|\\.)*\])|(?P<name>[A-Za-z][\w-]*)"
        r"|(?P<counts>\{\d+(?:,\d*)?\})|(?P<sign>[|()*+?.])|(?P<gap>\s+|#[^\n]*)"
    ),
    "lark": re.compile(
        rf"(?P<range>{STRING}\s*\.\.\s*{STRING})|(?P<text>{STRING}(?!i))"
        r"|(?P<regex>/(?:[^/\\\n]|\\.)+/(?![imslux]))|(?P<name>_*[A-Za-z]\w*)"
        r"|(?P<counts>~\s*\d+(?:\s*\.\.\s*\d+)?)|(?P<sign>[|()\[\]*+?])|(?P<gap>\s+|//[^\n]*|->\s*\w+)"
    ),
}
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))|([^\\])", re.DOTALL)
TOP = {"gbnf": "root", "lark": "start"}
OFTEN = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class Rule:
    """`span`: where its definition stands."""

    part: Part
    span: Span


@dataclass(frozen=True)
class Grammar:
    """Rules by name, and the one that the whole output is."""

    rules: dict[str, Rule]
    top: str


def read_grammar(kind: str, typed: str) -> Grammar:
    """A grammar of a kind, "gbnf" or "lark". Raises Unread."""
    heads = list(HEADS[kind].finditer(typed))
    if not heads:
        raise Unread("The grammar has no rules.")
    rules: dict[str, Rule] = {}
    for head, stop in zip(heads, [*(h.start() for h in heads[1:]), len(typed)], strict=True):
        directive = head[2] if kind == "lark" else None
        if directive:
            raise Unread(f"%{directive} is not supported here.")
        last = len(typed[:stop].rstrip())
        rules[head[1]] = Rule(Body(kind, typed, head.end(), stop).read(), (head.start(1), last))
    if TOP[kind] not in rules:
        raise Unread(f"The grammar has no rule {TOP[kind]}.")
    return Grammar(rules, TOP[kind])


class Body:
    """The words of one rule's definition, and the expression that they make."""

    def __init__(self, kind: str, typed: str, start: int, stop: int):
        self.kind, self.words, self.at = kind, [], 0
        while start < stop:
            word = WORDS[kind].match(typed, start, stop)
            if not word:
                raise Unread(f"{typed[start : start + 12]!r} is not supported here.")
            start = word.end()
            self.words += [] if word.lastgroup == "gap" else [word]

    def read(self) -> Part:
        part = self.choice()
        if self.at < len(self.words):
            raise Unread(f"{self.peek()!r} is not supported here.")
        return part

    def peek(self) -> str:
        return self.words[self.at][0] if self.at < len(self.words) else ""

    def choice(self) -> Part:
        """Alternatives; Lark may begin the first with a stroke, too."""
        self.at += self.peek() == "|"
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.peek() and self.peek() not in ("|", ")", "]"):
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, part: Part) -> Part:
        while self.at < len(self.words):
            word = self.words[self.at]
            if word.lastgroup == "counts":
                part = Repeat(part, *repeat_counts(word[0]))
            elif word[0] in OFTEN:
                part = Repeat(part, *OFTEN[word[0]])
            else:
                break
            self.at += 1
        return part

    def atom(self) -> Part:
        word = self.words[self.at]
        self.at += 1
        match word.lastgroup:
            case "text":
                return text(word)
            case "regex":
                return regex_text.read_regex(word.string, word.start() + 1, word.end() - 1)
            case "class":
                return regex_text.read_regex(word.string, word.start(), word.end())
            case "range":
                low, high = (spelled[1:-1] for spelled in word[0].split(".."))
                return Chars(ranges([(ord(low.strip()[-1]), ord(high.strip()[-1]))]), word.span())
            case "name":
                return Call(word[0], word.span())
        if word[0] == ".":
            return Chars(ANY_IN_LINE, word.span())
        closing = {"(": ")", "[": "]"}.get(word[0])
        part = self.choice() if closing else None
        if part is None or self.peek() != closing:
            raise Unread(f"{word[0]!r} at this place is not supported here.")
        self.at += 1
        return Repeat(part, 0, 1) if closing == "]" else part


def text(word: re.Match) -> Part:
    """A text in double quotes."""
    characters = []
    for sign in ESCAPE.finditer(word.string, word.start() + 1, word.end() - 1):
        code = sign[1] or sign[2]
        one = chr(int(code, 16)) if code else regex_text.CONTROL.get(sign[3], sign[3]) if sign[3] else sign[4]
        characters.append((one, *sign.span()))
    return literal(characters, word.end() - 1)


def repeat_counts(word: str) -> tuple[int, int | None]:
    """How often: {2}, {2,}, {2,5}, ~2, ~2..5."""
    numbers = re.findall(r"\d+", word)
    min_count = int(numbers[0])
    if len(numbers) > 1:
        return min_count, int(numbers[1])
    return min_count, None if "," in word else min_count
