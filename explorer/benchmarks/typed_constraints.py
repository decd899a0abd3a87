"""Random texts that somebody might type as a constraint: valid ones, nearly valid ones, and garbage.

`typed(number)` always gives the same text for the same number. Nearly all are within the length that a lane
accepts.
"""

import json
import random
import string
from typing import Any

KINDS = ("json_schema", "regex", "lark", "gbnf", "choices")  # four of five texts
OWN = ("labels", "words", "required_words", "members")
LETTERS = '{}[]()"\\:,|*+?.^$/=&~-abcé😀\n\t 0-9\x00\ud800'
COUNTS = (0, 1, 2, 3, 9, 30, 255, 1000, 40_000, 1_000_003, 2**31, 2**63, 10**30)
WORDS = ("cat", "a dog", "look*", "New York", "été", "", "x" * 90)
RIGHT = {
    "json_schema": (
        '{"type": "object", "properties": {"a": {"type": "string", "maxLength": 8}}, "required": ["a"]}',
        '{"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 4}, "minItems": 4}',
        '{"$defs": {"n": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}}, "$ref": "#/$defs/n"}',
        '{"type": "string", "format": "date-time"}',
    ),
    "regex": (
        r"[a-z]+(, [0-9]{1,3})*",
        r"(ab|cd)+?\d{2,900}$",
        r"^\w+@[^\s]{2,}\.[a-z]{2,3}",
        r"\p{Lu}.*\u00e9",
    ),
    "lark": (
        'start: item ("," item)*\nitem: NUMBER | "(" start ")"\nNUMBER: /[0-9]{1,3}/',
        'start: %json {"type": "integer"} | WORD\nWORD: /[a-z]+/ & ~/cat/\n%ignore /[ \\t]+/',
        'start: "a"{2,30} [b] b?\nb: "b" start | <[1-9]>',
    ),
    "gbnf": (
        'root ::= item ("," item)*\nitem ::= [0-9]+ | "(" root ")"',
        'root ::= "a"{2,9} b?\nb ::= [^\\n]* "\\x41" root',
    ),
    "choices": ("yes|no|perhaps", 'one\ntwo\n" three"', '"""|a||"'),
    "labels": ("red\nred car\nblue", "a, b, c"),
    "words": ("cat\nlook*\nNew York",),
    "required_words": ("cat | dog\nlook*\nhouse",),
    "members": ("Person: name, age, greet(who)\nmax: Person", "class A:\n    x: int\na = A()"),
}  # fmt: skip
KEYWORDS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "multipleOf",
    "exclusiveMaximum",
)
FORMATS = ("date", "time", "date-time", "email", "uuid", "ipv6", "uri", "regex", "foo")
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null", "foo")


def typed(number: int) -> tuple[str, str]:
    """(kind, text) for a number from 0."""
    draw = random.Random(number)
    kind = draw.choice(KINDS if number % 5 else OWN)
    how = draw.choice([letters, shuffled, broken, broken, made, made, made])
    return kind, how(kind, draw)


def letters(kind: str, draw: random.Random) -> str:
    """Random characters."""
    return "".join(draw.choices(LETTERS, k=draw.randint(0, 60)))


def shuffled(kind: str, draw: random.Random) -> str:
    """Words of valid texts in random order."""
    words = " ".join(RIGHT[kind]).split(" ")
    return draw.choice(" \n").join(draw.choices(words, k=draw.randint(1, 20)))


def broken(kind: str, draw: random.Random) -> str:
    """A valid text with a few characters removed, doubled or inserted."""
    text = list(draw.choice(RIGHT[kind]))
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(text) + 1)
        text[at : at + draw.randint(0, 3)] = draw.choice([[], text[at : at + 20] * 2, [draw.choice(LETTERS)]])
    return "".join(text)


def made(kind: str, draw: random.Random) -> str:
    """A text in the syntax of its kind, with numbers of any size, sometimes deeply nested or long."""
    match kind:
        case "json_schema":
            return json.dumps(chained(draw) if draw.random() < 0.1 else schema(draw, draw.randint(0, 5)))
        case "regex":
            return expression(draw, draw.choice([2, 3, 4, 300]))
        case "lark":
            return rules(draw, "start", ":", "/{}/")
        case "gbnf":
            return rules(draw, "root", " ::=", "({})")
    many = draw.choice([1, 3, 30, 300, 3000])
    lines = (draw.choice(WORDS) + draw.choice(["", " | ", ", ", ": ", "("]) + str(n) for n in range(many))
    return "\n".join(lines)


def schema(draw: random.Random, depth: int) -> Any:
    """A JSON schema of this depth, in which only some keywords fit their type."""
    if not depth or draw.random() < 0.1:
        return draw.choice([True, False, {}, {"type": draw.choice(TYPES)}, {"const": draw.choice(WORDS)}])
    below = [schema(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    built = {draw.choice(KEYWORDS): draw.choice([*COUNTS, 0.1, -3, 1e300]) for _ in range(draw.randint(0, 2))}
    match draw.randrange(8):
        case 0:
            wide = draw.choice([1, 3, 3, 30])
            names = [f"{draw.choice(WORDS)}{n}" for n in range(wide)]
            built |= {"type": "object", "properties": {name: draw.choice(below) for name in names}}
            built |= {
                "required": draw.sample(names, min(2, wide)),
                "additionalProperties": draw.choice(below),
            }
        case 1:
            built |= {"type": "array", "items": below[0], "prefixItems": below}
        case 2:
            built |= {draw.choice(["anyOf", "allOf", "oneOf"]): below}
        case 3:
            built |= {draw.choice(["not", "if", "contains", "propertyNames"]): below[0]}
        case 4:
            built |= {"type": "string", "pattern": expression(draw, 2), "format": draw.choice(FORMATS)}
        case 5:
            built |= {"type": draw.choices(TYPES, k=2), "enum": [*draw.choices(WORDS, k=2), 1, None]}
        case 6:
            built |= {
                "$defs": {"a": below[0], "b": {"$ref": draw.choice(["#", "#/$defs/a", "#/x", "http://x"])}}
            }
            built |= {"$ref": draw.choice(["#/$defs/a", "#/$defs/b", "#"])}
        case _:
            built |= {"type": draw.choice(["integer", "number", "string"])}
    return built


def chained(draw: random.Random) -> dict:
    """A schema with a chain of definitions, each of which refers to the next."""
    long = draw.choice([10, 40, 70, 5000])
    link = draw.choice([lambda to: to, lambda to: {"properties": {"a": to}}, lambda to: {"items": to}])
    named = {f"d{n}": link({"$ref": f"#/$defs/d{n + 1}"}) for n in range(long)}
    return {"$defs": named | {f"d{long}": {"type": "null"}}, "$ref": "#/$defs/d0"}


def expression(draw: random.Random, depth: int) -> str:
    """A regular expression of this depth."""
    if depth <= 0 or (depth < 100 and draw.random() < 0.3):
        return draw.choice(
            ["a", ".", r"\d", r"\w", "[a-f]", "[^x]", "é", r"\b", r"\pL", "(?i:x)", "(?=y)", ""]
        )
    below = expression(draw, depth - 1)
    match draw.randrange(6):
        case 0:
            return f"({below})*"
        case 1:
            return f"({below}){{{draw.choice(COUNTS)},{draw.choice(['', *COUNTS])}}}"
        case 2:
            return f"({below}|{draw.choice(string.ascii_letters)})"
        case 3:
            return f".*{below}.{{{draw.choice(COUNTS[:7])}}}"
        case 4:
            return f"(?:{below})+?" if depth < 100 else f"({below})"
        case _:
            return below + draw.choice(["$", "^", "+", "a{2}", r"\1"])


def rules(draw: random.Random, first: str, sign: str, quoted: str) -> str:
    """Rules of a grammar that refer to each other, or a long chain of them. first: the start rule; sign: what
    separates a name from its body; quoted: the form of a regular expression.
    """
    count = draw.choice([1, 3, 6, 6, 6, 40, 200, 400, 9000])
    names = [first, *(f"r{n}" for n in range(1, count))]
    if count > 6:  # a chain
        return "\n".join(
            f"{name}{sign} {then}" for name, then in zip(names, [*names[1:], '"a"'], strict=True)
        )
    return "\n".join(f"{name}{sign} " + body(draw, names, quoted, 3) for name in names)


def body(draw: random.Random, names: list[str], quoted: str, depth: int) -> str:
    """The right-hand side of a rule."""
    if not depth or draw.random() < 0.3:
        return draw.choice(['"a"', '"é\\n"', "[a-z]", quoted.format(expression(draw, 2)), *names, *names])
    parts = [body(draw, names, quoted, depth - 1) for _ in range(draw.randint(1, 3))]
    return draw.choice(
        [" ".join(parts), " | ".join(parts), f"({' '.join(parts)}){draw.choice('*+?')}", f"[{parts[0]}]",
         f"({parts[0]}){{{draw.choice(COUNTS)},{draw.choice(COUNTS)}}}"]
    )  # fmt: skip
