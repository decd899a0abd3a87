"""A small static analysis of Python: which members an object has, and how many arguments a call takes.

It reads declarations line by line, so that it can read unfinished text too: classes with fields and methods,
enums, functions, and variables whose type is declared or follows from the value assigned to them. A comment
in a class may declare in which order its methods are called (its typestate), such as `# protocol: start ->
open; open -> read, close; read -> read, close`. The analysis ignores imports, inheritance other than from
Enum, code that changes types, and branches: calls count in the order of their lines.
"""

import keyword
import re
from dataclasses import dataclass, field

LOOKED_AT = 200  # characters before a dot
NAME = r"[A-Za-z_]\w*"
CLASS = re.compile(rf"^class ({NAME})\s*(?:\(([^)]*)\))?\s*:")
FUNCTION = re.compile(rf"^(\s*)def ({NAME})\(([^)]*)\)\s*(?:->\s*({NAME}))?")
FIELD = re.compile(rf"^\s+({NAME})\s*(?::\s*({NAME}))?\s*(?:=.*)?$")
PROTOCOL = re.compile(r"^\s+# protocol:(.*)$")
VARIABLE = re.compile(rf"^\s*({NAME})\s*(?::\s*({NAME})\s*)?(?:=\s*(\S.*?)\s*)?$")
CALL = r"(?:\((?:[^()]|\([^()]*\))*\))?"  # brackets in brackets, and no deeper
METHOD_CALL = re.compile(rf"(?<![\w.])({NAME})\.({NAME})\(")
CHAIN = re.compile(rf"({NAME}{CALL}(?:\.{NAME}{CALL})*)$")


START = "start"  # the state of a new object


@dataclass
class Signature:
    """How many arguments a call may have, and the class of its result, None if unknown."""

    min_arguments: int
    max_arguments: int
    gives: str | None = None


@dataclass
class Record:
    """A class: its members with their classes (None if unknown), and the signatures of its methods."""

    is_enum: bool = False
    members: dict[str, str | None] = field(default_factory=dict)
    methods: dict[str, Signature] = field(default_factory=dict)
    fields: int = 0
    given: int = 0  # of the fields those that have a value already
    protocol: dict[str, frozenset[str]] = field(default_factory=dict)  # last call, or START -> next calls
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # member -> line and column of its name


def protocol_of(text: str) -> dict[str, frozenset[str]]:
    """`start -> open; open -> read, close` as last call -> what may be called next."""
    rules = [rule.partition("->") for rule in text.split(";") if "->" in rule]
    return {last.strip(): frozenset(re.findall(NAME, following)) for last, _, following in rules}


def signature(arguments: str, gives: str | None) -> tuple[Signature, dict[str, str]]:
    """The meaning of a list of parameters: (how many there are, name -> class of the annotated ones)."""
    pieces = [piece.strip() for piece in arguments.split(",") if piece.strip()]
    pieces = [piece for piece in pieces if piece not in ("self", "cls")]
    starred = any(piece.startswith("*") for piece in pieces)
    plain = [piece for piece in pieces if not piece.startswith("*")]
    types = {}
    for piece in plain:
        name, _, annotation = piece.partition(":")
        if annotation:
            types[name.strip()] = annotation.partition("=")[0].strip()
    max_arguments = 1 << 30 if starred else len(plain)
    return Signature(sum("=" not in piece for piece in plain), max_arguments, gives), types


def ordered(record: Record) -> frozenset[str]:
    """The methods of a class whose calls have an order."""
    return frozenset().union(record.protocol.keys() - {START}, *record.protocol.values())


class Analysis:
    """The declarations of a text. `lines` are read in their order; the last one may be unfinished."""

    def __init__(self, text: str):
        self.records: dict[str, Record] = {}
        self.functions: dict[str, Signature] = {}
        self.variables: dict[str, str] = {}
        self.called: dict[str, str] = {}  # variable -> the last of its calls that a protocol names
        inside: str | None = None
        for number, line in enumerate(text.split("\n")):
            if line.strip():
                inside = self._read(line, inside, number)
                self.called = self.after_calls(line)

    def _read(self, line: str, inside: str | None, number: int) -> str | None:
        """Reads a line inside a class, or outside of all; gives the class that later lines are inside of."""
        if inside and (match := PROTOCOL.match(line)):
            self.records[inside].protocol = protocol_of(match[1])
            return inside
        if match := CLASS.match(line):
            self.records[match[1]] = Record(is_enum=bool(match[2]) and "Enum" in match[2])
            return match[1]
        if match := FUNCTION.match(line):
            indent, name, arguments, gives = match.groups()
            made, types = signature(arguments, gives)
            self.variables |= types
            for parameter in ("self", *types):
                self.called.pop(parameter, None)
            if indent and inside:
                self.records[inside].places[name] = number, match.start(2)
                self.records[inside].members[name] = gives
                self.records[inside].methods[name] = made
                self.variables["self"] = inside
                return inside
            self.functions[name] = made
            return None
        if inside and line[0].isspace() and not line.startswith(" " * 8) and (match := FIELD.match(line)):
            record = self.records[inside]
            record.members[match[1]] = inside if record.is_enum else match[2]
            record.places[match[1]] = number, match.start(1)
            record.fields, record.given = record.fields + 1, record.given + ("=" in line)
            return inside
        if match := VARIABLE.match(line):
            self._assign(*match.groups())
        return inside if line[0].isspace() else None

    def _assign(self, name: str, annotation: str | None, value: str | None) -> None:
        self.called.pop(name, None)
        kind = annotation or (self.class_of(value) if value and CHAIN.fullmatch(value) else None)
        if kind and not keyword.iskeyword(name):
            self.variables[name] = kind
        elif value:
            self.variables.pop(name, None)

    def class_of(self, chain: str) -> str | None:
        """The class of the value of an expression such as `a.b(c).d`, None if it is not known."""
        kind: str | None = None
        for place, piece in enumerate(re.findall(rf"{NAME}{CALL}", chain)):
            name, called = piece.partition("(")[0], "(" in piece
            if place:
                record = self.records.get(kind or "")
                if record is None or name not in record.members or called != (name in record.methods):
                    return None
                kind = record.members[name]
            elif called:
                made = self.functions.get(name)
                kind = name if name in self.records else made.gives if made else None
            else:
                kind = self.variables.get(name) or (name if name in self.records else None)
        return kind

    def after_calls(self, line: str) -> dict[str, str]:
        """`called` after the calls of a line."""
        called = dict(self.called)
        for name, method in METHOD_CALL.findall(line.partition("#")[0]):
            record = self.records.get(self.variables.get(name, ""))
            if record and method in ordered(record):
                called[name] = method
        return called

    def members(self, chain: str, line: str = "") -> frozenset[str] | None:
        """The members that may follow a dot after an expression; none if its class is not known, and None if
        its protocol lets nothing follow. line: the text before the expression in its own line.
        """
        record = self.records.get(self.class_of(chain) or "")
        if record is None:
            return frozenset()
        if not record.protocol or not (chain in self.variables or chain.partition("(")[0] in self.records):
            return frozenset(record.members)  # which calls came before is not known
        last = self.after_calls(line).get(chain, START)
        later = ordered(record) - record.protocol.get(last, frozenset())
        return frozenset(record.members) - later or None

    def declared(self, chain: str, name: str) -> tuple[int, int] | None:
        """Line and column where the class of an expression declares a member."""
        record = self.records.get(self.class_of(chain) or "")
        return record.places.get(name) if record else None

    def call(self, chain: str) -> Signature | None:
        """How many arguments may stand in the bracket after an expression, None if it is not known."""
        before, _, name = chain.rpartition(".")
        if before:
            record = self.records.get(self.class_of(before) or "")
            return record.methods.get(name) if record else None
        if name in self.records:
            record = self.records[name]
            return None if record.is_enum else Signature(record.fields - record.given, record.fields, name)
        return self.functions.get(name)


def chain_before(text: str) -> str:
    """The expression at the end of a text, such as `a.b` of `x = a.b`; empty if there is none."""
    line = text.rpartition("\n")[2][-LOOKED_AT:]
    if "#" in line:
        return ""
    match = CHAIN.search(line)
    return match[1] if match and not line[: match.start()].endswith(".") else ""
