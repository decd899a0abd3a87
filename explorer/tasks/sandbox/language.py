"""The subset of Python in which programs may be written; anything not listed here is refused before it runs.

It has functions, loops, comprehensions, generators and exceptions, but no classes, `with`, `async` or
`match`, and no name or attribute that begins with an underscore. Attributes are those of numbers, strings and
containers; none leads from a value to frames, code or types.
"""

import ast
import builtins
import re
import warnings
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from functools import cache

from explorer.tasks.sandbox.allowed import BUILTINS, MODULES, exports, words

LONGEST = 20_000  # maximum characters of a program
NAME = "answer"  # the file name of a program
# Warnings of Python about a parsed program are of no use here.
warnings.filterwarnings("ignore", module=f"{NAME}$", category=SyntaxWarning)
warnings.filterwarnings("ignore", module=f"{NAME}$", category=DeprecationWarning)

NODES = words("""
    Module Expr FunctionDef Lambda Return arguments arg Call keyword Starred
    Assign AugAssign AnnAssign NamedExpr Delete Name Constant Attribute Subscript Slice Load Store Del
    For While If IfExp Break Continue Pass Assert Raise Try ExceptHandler Global Nonlocal
    Import ImportFrom alias Yield YieldFrom GeneratorExp ListComp SetComp DictComp comprehension
    BoolOp And Or BinOp Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitOr BitXor BitAnd
    UnaryOp Invert Not UAdd USub Compare Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn
    List Tuple Set Dict JoinedStr FormattedValue
""")
WORDS = {  # refused node -> its name for people
    "ClassDef": "a class",
    "With": "with",
    "AsyncFunctionDef": "async",
    "AsyncFor": "async",
    "AsyncWith": "async",
    "Await": "await",
    "Match": "match",
    "MatMult": "@",
}
KINDS = (
    str,
    bytes,
    bytearray,
    int,
    float,
    complex,
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    slice,
    Counter,
    ChainMap,
    OrderedDict,
    defaultdict,
    deque,
    re.Match,
    re.Pattern,
)
MORE = {"args", "from_iterable", "cache_clear", "cache_info"}  # attributes of exceptions, chain and lru_cache
NEVER = {"format", "format_map"}  # a format string can access attributes by name


@cache
def attributes() -> frozenset[str]:
    """Every attribute that a program may name."""
    names = {name for kind in KINDS for name in dir(kind)} | MORE
    names = names.union(*(offered(module) for module in MODULES))
    return frozenset(name for name in names - NEVER if not name.startswith("_"))


@cache
def offered(module: str) -> frozenset[str]:
    """What a program may take from a module that it may import."""
    return frozenset(vars(exports(module)))


def refusal(source: str) -> str | None:
    """Why a program is not run, in one sentence; None if it may run. Never raises."""
    if len(source) > LONGEST:
        return f"It is too long: a program may have at most {LONGEST:,} characters."
    try:
        nodes = list(ast.walk(ast.parse(source, NAME)))
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
        return "It is not valid Python."  # or nested too deeply for Python's parser
    nodes.sort(key=order)
    known = BUILTINS.union(name for node in nodes for name in binds(node))
    for node in nodes:
        if problem := unlisted(node) or reaches(node, known):
            return problem
    return None


def order(node: ast.AST) -> tuple[int, int]:
    """Sort key: in `open(x).y.z` open is reported first, then y, then z."""
    return (node.end_lineno, node.end_col_offset) if isinstance(node, ast.Attribute) else (0, 0)


def binds(node: ast.AST) -> Iterator[str]:
    """The names that a node defines or assigns."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name


def identifiers(node: ast.AST) -> Iterator[str]:
    """Every identifier in a node, in any role; strings are not identifiers."""
    if isinstance(node, ast.Constant):
        return
    for _, value in ast.iter_fields(node):
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))


def unlisted(node: ast.AST) -> str | None:
    """A sentence on a node that is not in this language; None if it is."""
    kind = type(node).__name__
    if kind in NODES:
        return None
    return f"It uses {WORDS.get(kind, kind)}, which is not allowed."


def reaches(node: ast.AST, known: frozenset[str]) -> str | None:
    """A sentence on a node that uses a forbidden name; None otherwise. known: builtins and the program's
    names.
    """
    for name in imported(node):
        return f"It reaches for {name}, which is not allowed."
    for name in identifiers(node):
        if name.startswith("_") and name != "_":
            return f"It reaches for {name}, which is not allowed."
    if isinstance(node, ast.Attribute) and node.attr not in attributes():
        return f"It reaches for {node.attr}, which is not allowed."
    if isinstance(node, ast.Name) and node.id not in known and hasattr(builtins, node.id):
        return f"It reaches for {node.id}, which is not allowed."
    return None


def imported(node: ast.AST) -> Iterator[str]:
    """The names that a node imports but may not."""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if one.name not in MODULES)
    elif isinstance(node, ast.ImportFrom):
        if node.level or node.module not in MODULES:
            yield node.module or "its own package"
        else:
            names = (one.name for one in node.names)
            yield from (f"{node.module}.{name}" for name in names if name not in {*offered(node.module), "*"})
