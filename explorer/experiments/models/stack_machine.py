"""Small typed functions of one record, and the code of a stack machine to which they compile: the names of
the record, of its fields, and all types are lost.

A program is two parts of words: `class Point x : int y : int` and `def Point -> int : ( x + y )`, in which
fields stand for themselves; to Python they are keys of a dictionary `p`.
"""

import ast
import operator
import random
from dataclasses import dataclass

INT, TEXT, BOOL = "int", "text", "bool"
# name of a record -> its fields, each with its type
RECORDS = {
    "Point": (("x", INT), ("y", INT)),
    "Range": (("low", INT), ("high", INT)),
    "Size": (("width", INT), ("height", INT)),
    "Date": (("month", INT), ("day", INT)),
    "Person": (("name", TEXT), ("age", INT)),
    "Item": (("label", TEXT), ("price", INT)),
    "Line": (("number", INT), ("words", TEXT)),
    "Room": (("floor", INT), ("door", TEXT)),
    "Pair": (("first", TEXT), ("second", TEXT)),
    "Link": (("title", TEXT), ("address", TEXT)),
    "Time": (("hours", INT), ("minutes", INT), ("seconds", INT)),
    "Color": (("red", INT), ("green", INT), ("blue", INT)),
    "Player": (("alias", TEXT), ("score", INT), ("level", INT)),
}
SIGNS = {"ADD": "+", "SUB": "-", "MUL": "*"}
WORDS = ("red", "moon", "cat", "a", "stone", "")


@dataclass(frozen=True)
class Program:
    """The words of both parts, and the code of the machine."""

    types: list[str]
    code: list[str]
    machine: list[str]


def expression(rng: random.Random, fields: tuple, wanted: str, depth: int) -> tuple[list[str], list[str]]:
    """(words, machine code) of a random expression of a type."""
    own = [at for at, (_, kind) in enumerate(fields) if kind == wanted]
    leaf = depth <= 0 or rng.random() < 0.15
    if wanted == BOOL:
        (left, first), (right, second) = (expression(rng, fields, INT, depth - 1) for _ in range(2))
        return [*left, "<", *right], [*first, *second, "LESS"]
    if wanted == TEXT:
        if leaf and own:
            return read_field(rng.choice(own), fields)
        (left, first), (right, second) = (expression(rng, fields, TEXT, depth - 1) for _ in range(2))
        return [*left, "+", *right], [*first, *second, "CAT"]
    texts = [at for at, (_, kind) in enumerate(fields) if kind == TEXT]
    if leaf and texts and (not own or rng.random() < 0.4):
        words, code = read_field(rng.choice(texts), fields)
        return ["len", "(", *words, ")"], [*code, "LEN"]
    if leaf and own and rng.random() < 0.8:
        return read_field(rng.choice(own), fields)
    if leaf:
        number = str(rng.randint(1, 9))
        return [number], ["PUSH", number]
    name = rng.choice(("ADD", "SUB", "MUL"))
    (left, first), (right, second) = (expression(rng, fields, INT, depth - 1) for _ in range(2))
    return ["(", *left, SIGNS[name], *right, ")"], [*first, *second, name]


def read_field(at: int, fields: tuple) -> tuple[list[str], list[str]]:
    """(words, machine code) that read a field."""
    return [fields[at][0]], ["GET", f"@{at}"]


def make_program(rng: random.Random, longest: int) -> Program:
    """A program that reads each field of its record, with at most so much machine code."""
    while True:
        name = rng.choice(list(RECORDS))
        fields = RECORDS[name]
        kinds = [INT, INT, BOOL, *([TEXT] if any(kind == TEXT for _, kind in fields) else [])]
        result = rng.choice(kinds)
        words, machine = expression(rng, fields, result, 2)
        if len(machine) <= longest and all(f"@{at}" in machine for at in range(len(fields))):
            break
    types = ["class", name, *(word for field, kind in fields for word in (field, ":", kind))]
    return Program(types, ["def", name, "->", result, ":", *words], machine)


OPERATIONS = {
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "CAT": operator.add,
    "LESS": operator.lt,
}


def executed(machine: list[str], record: list) -> object:
    """The value that the machine's code leaves on the stack, for the values of a record's fields."""
    stack: list = []
    words = iter(machine)
    for name in words:
        if name == "GET":
            stack.append(record[int(next(words)[1:])])
        elif name == "PUSH":
            stack.append(int(next(words)))
        elif name == "LEN":
            stack.append(len(stack.pop()))
        else:
            last, first = stack.pop(), stack.pop()
            stack.append(OPERATIONS[name](first, last))
    return stack.pop()


def records(rng: random.Random, fields: list[str], count: int) -> list[list]:
    """Values for fields of these types."""
    return [
        [rng.choice(WORDS) if kind == TEXT else rng.randint(0, 9) for kind in fields] for _ in range(count)
    ]


def fields_of(types: list[str]) -> dict[str, str] | None:
    """Field -> type, as the first part of a program defines them; None if it is no definition."""
    if len(types) < 5 or types[0] != "class" or (len(types) - 2) % 3:
        return None
    found = {}
    for at in range(2, len(types), 3):
        field, sign, kind = types[at : at + 3]
        if sign != ":" or kind not in (INT, TEXT, BOOL) or field in found:
            return None
        found[field] = kind
    return found


def python_of(code: list[str]) -> str | None:
    """The expression of a program's second part in Python, with fields as keys; None if it is no function."""
    if len(code) < 6 or code[0] != "def" or code[2] != "->" or code[4] != ":":
        return None
    words = [f"p[{word!r}]" if word.isalpha() and word != "len" else word for word in code[5:]]
    text = " ".join(words)
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    return text


def checks(types: list[str], code: list[str]) -> bool:
    """Whether the function is one of the record that is defined, reads only its fields, combines values of
    fitting types, and returns what it says.
    """
    fields, text = fields_of(types), python_of(code)
    if fields is None or text is None or code[1] != types[1]:
        return False
    return kind_of(ast.parse(text, mode="eval").body, fields) == code[3]


def kind_of(node: ast.expr, fields: dict[str, str]) -> str | None:
    """The type of an expression, None if it has none."""
    match node:
        case ast.Constant(value=int()):
            return INT
        case ast.Subscript(slice=ast.Constant(value=str(field))):
            return fields.get(field)
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            return INT if kind_of(inner, fields) == TEXT else None
        case ast.BinOp(left=left, op=op, right=right):
            kinds = {kind_of(left, fields), kind_of(right, fields)}
            if kinds == {INT}:
                return INT
            return TEXT if kinds == {TEXT} and isinstance(op, ast.Add) else None
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
            return BOOL if {kind_of(left, fields), kind_of(right, fields)} == {INT} else None
    return None
