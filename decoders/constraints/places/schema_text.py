"""Where in a JSON schema the beginning of a JSON text stands: the names that may come next, or the part that
describes the value in progress. Follows properties, items, references within the schema and alternatives.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from decoders.constraints.places.syntax import Span, Unread

WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
BEGUN = re.compile(rf'{WORD.pattern}|"(?:[^"\\]|\\.)*\\?$')  # or a string without its end
DEEPEST = 12  # references and alternatives within each other
TYPES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
COMBINED = ("anyOf", "oneOf", "allOf")


@dataclass
class Value:
    """A JSON value with its place; of an object its members, of a list its items."""

    span: Span
    value: Any = None
    members: dict[str, tuple[Span, "Value"]] = field(default_factory=dict)  # name -> place of the name, value
    items: list["Value"] = field(default_factory=list)

    def get(self, name: str) -> "Value | None":
        member = self.members.get(name)
        return member[1] if member else None


def read_json_text(typed: str) -> Value:
    """A JSON text with its places. Raises Unread."""
    words = list(WORD.finditer(typed))
    try:
        value, used = _value(words, 0)
    except (IndexError, ValueError, RecursionError):
        raise Unread("The schema is not valid JSON.") from None
    if used < len(words):
        raise Unread("The schema is not valid JSON.")
    return value


def _value(words: list[re.Match], at: int) -> tuple[Value, int]:
    """The value that begins at a word, and the number of the word after it."""
    first = words[at]
    if first[0] not in "{[":
        return Value(first.span(), json.loads(first[0])), at + 1
    made, at = Value(first.span()), at + 1
    while words[at][0] not in "}]":
        if first[0] == "{":
            name = words[at]
            inner, at = _value(words, at + 2)
            made.members[json.loads(name[0])] = (name.span(), inner)
        else:
            inner, at = _value(words, at)
            made.items.append(inner)
        at += words[at][0] == ","
    made.span = first.start(), words[at].end()
    made.value = {} if first[0] == "{" else []
    return made, at + 1


@dataclass
class Frame:
    """An unfinished object or list: what it contains so far, and what must come next."""

    kind: str  # { or [
    wants: str  # "name", "colon", "value", "comma"
    names: list[str] = field(default_factory=list)  # of an object; the last is that of the value under way
    index: int = 0  # of a list


def under_way(text: str) -> tuple[list[Frame], str]:
    """The objects and lists that are open at the end of an unfinished JSON text, and its unfinished last
    word.
    """
    frames: list[Frame] = []
    partial = ""
    for word in BEGUN.finditer(text):
        sign, top = word[0], frames[-1] if frames else None
        open_ = word.end() == len(text) and (sign[0] != '"' or not WORD.fullmatch(sign))
        if sign in "{[":
            frames.append(Frame(sign, "name" if sign == "{" else "value"))
        elif sign in "}]":
            frames.pop()
            _done(frames)
        elif sign in ":,":
            top.wants = "value" if sign == ":" or top.kind == "[" else "name"
            top.index += sign == "," and top.kind == "["
        elif open_:  # a string, a number that may grow, or the beginning of a word
            partial = sign
        elif top and top.wants == "name":
            top.names.append(json.loads(sign))
            top.wants = "colon"
        else:
            _done(frames)
    return frames, partial


def _done(frames: list[Frame]) -> None:
    if frames:
        frames[-1].wants = "comma"


class Schema:
    """A schema with the place of each of its parts."""

    def __init__(self, typed: str):
        """Raises Unread."""
        self.root = read_json_text(typed)

    def places(self, text: str) -> tuple[list[Span], list[Span]]:
        """For an unfinished JSON text: the places of what may come next, and of the parts around them."""
        frames, partial = under_way(text)
        if text.strip() and not frames and not partial:
            return [], []  # the value is whole
        parts = [(self.root, self.root.span)]  # schemas with the place of the member that holds each
        for n, frame in enumerate(frames):
            innermost = n + 1 == len(frames)
            if innermost and frame.kind == "{" and frame.wants in ("name", "comma"):
                concrete = [one for part, _ in parts for one in self._concrete(part, "{")]
                spans = [span for one in concrete for span in self._names(one, frame, partial)]
                return spans, [one.span for one in concrete]
            if innermost and frame.wants == "comma":
                break
            parts = [below for part, _ in parts for below in self._below(part, frame)]
        if frames and frames[-1].wants == "colon":
            return [around for _, around in parts], []
        concrete = [(one, around) for part, around in parts for one in self._concrete(part, partial)]
        awaited = [span for one, _ in concrete for span in self._values(one, partial)]
        return awaited, list(dict.fromkeys(around for _, around in concrete))

    def _below(self, part: Value, frame: Frame) -> list[tuple[Value, Span]]:
        """The schemas of the unfinished value in an object or a list."""
        schemas = []
        for one in self._concrete(part, frame.kind):
            if frame.kind == "{":
                member = one.get("properties") and one.get("properties").members.get(frame.names[-1])
                other = one.get("additionalProperties")
                if member:
                    schemas.append((member[1], (member[0][0], member[1].span[1])))
                elif other and not isinstance(other.value, bool):
                    schemas.append((other, other.span))
                continue
            first, others = one.get("prefixItems"), one.get("items")
            if first and frame.index < len(first.items):
                schemas.append((first.items[frame.index], first.items[frame.index].span))
            elif others and not isinstance(others.value, bool):
                schemas.append((others, others.span))
        return schemas

    def _concrete(self, part: Value, begun: str, depth: int = 0) -> list[Value]:
        """The schemas that a reference or alternatives stand for, without those whose type excludes a text
        that begins like this.
        """
        if depth > DEEPEST:
            return []
        if reference := part.get("$ref"):
            referred = self._referred(str(reference.value))
            return self._concrete(referred, begun, depth + 1) if referred else []
        inner = [one for name in COMBINED if part.get(name) for one in part.get(name).items]
        if inner:
            return [concrete for one in inner for concrete in self._concrete(one, begun, depth + 1)]
        wanted, stated = TYPES.get(begun[:1], "number"), part.get("type")
        types = [stated.value, *(one.value for one in stated.items)] if stated else []
        if begun and types and wanted not in types and (wanted != "number" or "integer" not in types):
            return []
        return [part]

    def _referred(self, reference: str) -> Value | None:
        at = self.root if reference.startswith("#") else None
        for name in filter(None, reference[1:].split("/")):
            at = at and at.get(name.replace("~1", "/").replace("~0", "~"))
        return at

    @staticmethod
    def _names(one: Value, frame: Frame, partial: str) -> list[Span]:
        """The names that may come next: in their order, up to the first required one."""
        properties, required = one.get("properties"), one.get("required")
        names = list(properties.members) if properties else []
        known = [names.index(name) for name in frame.names if name in names]
        must = {item.value for item in required.items} if required else set()
        spans = []
        for name in names[max(known) + 1 if known else 0 :]:
            if json.dumps(name, ensure_ascii=False).startswith(partial):
                spans.append(properties.members[name][0])
            if name in must:
                break
        return spans

    @staticmethod
    def _values(one: Value, partial: str) -> list[Span]:
        """The listed values that begin like this; without a list, the whole schema."""
        listed = one.get("enum").items if one.get("enum") else [one.get("const")] if one.get("const") else []
        if not listed:
            return [one.span]
        return [
            item.span for item in listed if json.dumps(item.value, ensure_ascii=False).startswith(partial)
        ]
