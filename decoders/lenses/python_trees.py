"""Python code as a tree of its tokens: the nodes of `ast`, and each token below the smallest node around it.

Names, numbers, texts and plain parameters are leaves, as in concrete grammars; comments and docstrings are
left out; the statements of a body stand below a node `block`.
"""

import ast
import io
import tokenize
from dataclasses import dataclass

from decoders.lenses.binary_trees import Node
from decoders.refusal import Refusal

DROPPED = {
    tokenize.NEWLINE,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
LEAVES = (ast.Name, ast.Constant, ast.JoinedStr, ast.arg)
BODIES = ("body", "orelse", "finalbody")
Span = tuple[int, int]  # of characters


@dataclass(frozen=True)
class Parsed:
    """`spans`: of the leaves in the code. `tree`: None if the code cannot be parsed, as is usual for the
    beginning of a program.
    """

    spans: list[Span]
    tree: Node | str | None


def parse(code: str) -> Parsed:
    """The tree of Python code. Raises Refusal with one sentence if it has no tokens."""
    words = tokens(code)
    try:
        module = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        module = None
    if module is not None:
        places = Places(code)
        docstrings = [places.span(node) for node in docs(module)]
        words = [word for word in words if not any(inside(word, span) for span in docstrings)]
        texts = [places.span(node) for node in ast.walk(module) if one_leaf(node)]
        words = texts_as_one(words, texts)
    if not words:
        raise Refusal("There is no Python code in this text; give a function, for example.")
    return Parsed(words, None if module is None else grown(module, words, places, code))


def tokens(code: str) -> list[Span]:
    """The spans of the tokens that code begins with, up to where it cannot be read."""
    starts, spans = line_starts(code), []
    try:
        for word in tokenize.generate_tokens(io.StringIO(code).readline):
            if word.type not in DROPPED and word.string.strip():
                begin, end = (starts[line - 1] + column for line, column in (word.start, word.end))
                spans.append((begin, end))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return spans


def line_starts(code: str) -> list[int]:
    """Where each line begins."""
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


class Places:
    """Where nodes of `ast` stand in characters; `ast` itself counts bytes in lines."""

    def __init__(self, code: str):
        self.lines, self.starts, self.end = code.splitlines(keepends=True), line_starts(code), len(code)

    def span(self, node: ast.AST) -> Span:
        """From the first character of a node to after its last."""
        if isinstance(node, ast.Module):
            return 0, self.end
        first = self.at(node.lineno, node.col_offset)
        for one in getattr(node, "decorator_list", []):
            first = min(first, self.at(one.lineno, one.col_offset) - 1)  # with its @
        return first, self.at(node.end_lineno, node.end_col_offset)

    def at(self, line: int, column: int) -> int:
        """The character at a line and a byte of it."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())


def inside(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def docs(module: ast.Module) -> list[ast.stmt]:
    """The statements that are docstrings."""
    docstrings = []
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.body:
            first = node.body[0]
            constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if constant and isinstance(first.value.value, str):
                docstrings.append(first)
    return docstrings


def one_leaf(node: ast.AST) -> bool:
    """Whether a node is one leaf, however many tokens it has."""
    return isinstance(node, LEAVES) and getattr(node, "annotation", None) is None


def texts_as_one(words: list[Span], texts: list[Span]) -> list[Span]:
    """The tokens, those inside one of `texts` as one."""
    result: list[Span] = []
    for word in words:
        around = next((text for text in texts if inside(word, text) and word != text), word)
        if not result or result[-1] != around:
            result.append(around)
    return result


def grown(node: ast.AST, words: list[Span], places: Places, code: str) -> Node | str:
    """The tree of a node whose tokens are `words`."""
    if one_leaf(node):
        return code[words[0][0] : words[-1][1]]
    return Node(type(node).__name__, tuple(children_of(placed_children(node), words, places, code)))


def children_of(inner: list, words: list[Span], places: Places, code: str) -> list[Node | str]:
    """Trees of nodes, or of lists of nodes that are blocks, and what stands between them: all of `words`."""
    trees: list[Node | str] = []
    owned = [(reach(one, places), one) for one in inner]
    for span, one in sorted(owned, key=lambda pair: pair[0]):
        before = [word for word in words if word[1] <= span[0]]
        own = [word for word in words if inside(word, span)]
        trees += [code[a:b] for a, b in before]
        words = [word for word in words if word[0] >= span[1]]
        if own and isinstance(one, list):
            trees.append(Node("block", tuple(children_of(one, own, places, code))))
        elif own:
            trees.append(grown(one, own, places, code))
    return trees + [code[a:b] for a, b in words]


def reach(one: ast.AST | list, places: Places) -> Span:
    """The span of a node, or of a block."""
    if isinstance(one, list):
        return places.span(one[0])[0], places.span(one[-1])[1]
    return places.span(one)


def placed_children(node: ast.AST) -> list:
    """The nodes below a node that stand somewhere, those of placeless ones (parameters, clauses of a
    comprehension) among them; the statements of a body as one list, a block.
    """
    nodes_below: list = []
    for name, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        nodes = [one for one in values if isinstance(one, ast.AST)]
        if name in BODIES and isinstance(value, list) and nodes and not isinstance(node, ast.Module):
            nodes_below.append(nodes)
            continue
        for one in nodes:
            nodes_below += [one] if hasattr(one, "lineno") else placed_children(one)
    return nodes_below
