"""What the files of strategies say, read without importing them: which module declares which strategy, and
what a strategy's parameters are. An import would bring in torch, which takes seconds; reading takes a tenth.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from decoders.parameters import Parameter

FAMILIES = {  # the folder of its strategies -> its heading
    "sampling": "One token at a time",
    "search": "Search",
    "speculative": "Draft and verify",
    "parallel": "Parallel",
    "diffusion": "Diffusion",
}
# A decorator that declares a strategy, up to its name, which stands there as a text. A pattern that begins
# with a letter is found eight times as fast as one that begins with ^.
DECLARED = re.compile(r'\n@(?:strategy|draft_and_verify)\(.*?\bname="(\w+)"', re.DOTALL)


@cache
def modules() -> dict[str, str]:
    """Name of a strategy -> the module that declares it."""
    return {
        name: module
        for family in FAMILIES
        for module, file in found(files(__package__) / family, f"{__package__}.{family}")
        for name in DECLARED.findall(file.read_text("utf-8"))
    }


def found(folder: Traversable, package: str) -> Iterator[tuple[str, Traversable]]:
    """(module, file) of each Python file in a folder, which may lie in a zip file."""
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{package}.{entry.name.removesuffix('.py')}", entry
        elif entry.is_dir():
            yield from found(entry, f"{package}.{entry.name}")


def parameters(name: str) -> tuple[Parameter, ...] | None:
    """The parameters of a strategy: its file's expression for them is evaluated with the imports and the
    constants that it uses, and nothing else of the file runs. None if the declaration has no such expression
    of its own.
    """
    folders = modules()[name].removeprefix(f"{__package__}.").split(".")
    source = files(__package__).joinpath(*folders[:-1], f"{folders[-1]}.py").read_text("utf-8")
    tree = ast.parse(source)
    wanted = next(filter(None, (parameters_in(call, name) for call in ast.walk(tree))), None)
    if wanted is None:
        return None
    used, names = [], read(wanted)
    for statement in reversed(tree.body):
        if bound := names & made(statement):
            if isinstance(statement, ast.ImportFrom):  # only what is used of it
                statement.names = [one for one in statement.names if (one.asname or one.name) in bound]
            used.append(statement)
            names |= read(statement)
    namespace: dict[str, Any] = {}
    exec(compile(ast.Module(used[::-1], []), modules()[name], "exec"), namespace)
    return eval(compile(ast.Expression(wanted), modules()[name], "eval"), namespace)


def parameters_in(call: ast.AST, name: str) -> ast.expr | None:
    """The argument `parameters` of a call that declares the strategy `name`; None for any other node."""
    if not isinstance(call, ast.Call):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    called = given.get("name")
    return given.get("parameters") if isinstance(called, ast.Constant) and called.value == name else None


def made(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {one.asname or one.name.partition(".")[0] for one in names}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
    return {node.id for node in ast.walk(statement) if is_name(node, ast.Store)}


def read(node: ast.AST) -> set[str]:
    """The names that an expression or a statement reads."""
    return {one.id for one in ast.walk(node) if is_name(one, ast.Load)}


def is_name(node: ast.AST, context: type[ast.expr_context]) -> bool:
    """Whether a node is a name that is read, or stored."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)
