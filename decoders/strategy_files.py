"""What the files of strategies say, read without importing them: which module declares which strategy, and
what its parameters are. An import would bring in torch and transformers, which takes seconds.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from decoders.parameters import Parameter

OURS = f"{__package__}."  # how the names of modules begin that are read
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
def strategy_modules() -> dict[str, str]:
    """Name of a strategy -> the module that declares it."""
    return {
        name: module
        for family in FAMILIES
        for module, file in python_files(files(__package__) / family, f"{__package__}.{family}")
        for name in DECLARED.findall(file.read_text("utf-8"))
    }


def python_files(folder: Traversable, package: str) -> Iterator[tuple[str, Traversable]]:
    """(module, file) of each Python file in a folder, which may lie in a zip file."""
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{package}.{entry.name.removesuffix('.py')}", entry
        elif entry.is_dir():
            yield from python_files(entry, f"{package}.{entry.name}")


def read_parameters(name: str) -> tuple[Parameter, ...] | None:
    """The parameters of a strategy; None if they cannot be told from its file alone."""
    module = strategy_modules()[name]
    given = next(filter(None, (parameters_in(call, name) for call in ast.walk(syntax_of(module)))), None)
    try:
        return given and value_without_import(module, given)
    except NameError:
        return None


def parameters_in(call: ast.AST, name: str) -> ast.expr | None:
    """The argument `parameters` of a call that declares the strategy `name`; None for any other node."""
    if not isinstance(call, ast.Call):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    called = given.get("name")
    return given.get("parameters") if isinstance(called, ast.Constant) and called.value == name else None


@cache
def syntax_of(module: str) -> ast.Module:
    """The syntax tree of one of our modules."""
    *folders, name = module.removeprefix(OURS).split(".")
    return ast.parse(files(__package__).joinpath(*folders, f"{name}.py").read_text("utf-8"))


def value_without_import(module: str, expression: ast.expr) -> Any:
    """An expression of a module. Of the module only what the expression uses is executed; what that imports
    from our other modules is found in the same way.
    """
    used, names, namespace = [], names_read(expression), {}
    for statement in reversed(syntax_of(module).body):
        if bound := names & names_bound(statement):
            if isinstance(statement, ast.ImportFrom) and statement.module.startswith(OURS):
                for one in statement.names:
                    if (called := one.asname or one.name) in bound:
                        namespace[called] = imported_value(statement.module, one.name)
            else:
                used.append(statement)
                names |= names_read(statement)
    exec(compile(ast.Module(used[::-1], []), module, "exec"), namespace)
    return eval(compile(ast.Expression(expression), module, "eval"), namespace)


def imported_value(module: str, name: str) -> Any:
    """What `from module import name` gives."""
    if module in sys.modules and hasattr(sys.modules[module], name):
        return getattr(sys.modules[module], name)
    try:
        return value_without_import(module, ast.Name(name, ast.Load(), lineno=1, col_offset=0))
    except (NameError, FileNotFoundError):  # a decorated function, or a module in a package
        found = importlib.import_module(module)
        return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")


def names_bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {one.asname or one.name.partition(".")[0] for one in names}
        case ast.FunctionDef(name=name, decorator_list=[]) | ast.ClassDef(name=name):
            return {name}
        case ast.FunctionDef():  # what decorates it, such as `strategy`, must not run twice
            return set()
    return {node.id for node in ast.walk(statement) if is_name(node, ast.Store)}


def names_read(node: ast.AST) -> set[str]:
    """The names that an expression or a statement reads."""
    return {one.id for one in ast.walk(node) if is_name(one, ast.Load)}


def is_name(node: ast.AST, context: type[ast.expr_context]) -> bool:
    """Whether a node is a name that is read, or stored."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)
