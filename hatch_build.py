"""Lays out the wheel: everything lies inside `decoding_explorer`, so that no other top-level name is taken.

In a checkout the packages lie side by side (`decoders`, `visualizers`, `explorer`), as people read them. The
wheel has the same files in one package, and their absolute imports are rewritten to where they then are. No
other statement changes: a module's name never stands in a string (`decoders/packages.py` makes it).
"""

import ast
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME = "decoding_explorer"
PACKAGES = ("decoders", "visualizers", "explorer")
# The wheel has the weights of the first page's pair, of all heads on it and of the lessons' diffusion model.
# Of these models it has the configs; their weights are the distribution decoding-explorer-models.
LATER = {
    "llama-tiny-chunked-memory",
    "llama-tiny-dna",
    "llama-tiny-fastdraft",
    "llama-tiny-fastdraft-continued",
    "llama-tiny-fastdraft-pretrained",
    "llama-tiny-flow",
    "llama-tiny-flowformer",
    "llama-tiny-lud",
    "llama-tiny-moe",
    "llama-tiny-sambay",
    "llama-tiny-seq2seq",
    "llama-tiny-set-block",
    "llama-tiny-verilog",
    "llama-tiny-verilog-heads",
    "llama-tiny-wedlm",
    "llama-tiny-yoco",
    "tiny-bytenet",
    "tiny-codet5",
    "tiny-mblm",
    "tiny-megabyte",
    "tiny-pervasive",
    "tiny-recursive-bytes",
    "tiny-retro",
}


class WheelLayout(BuildHookInterface):
    """The hook of pyproject.toml for the target `wheel`. An editable install leaves the checkout as it is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files of the wheel to `build_data`."""
        if version == "editable":
            return
        self.made = Path(tempfile.mkdtemp(prefix="decoding-explorer-wheel-"))
        lay_out(Path(self.root), self.made)
        build_data["force_include"][str(self.made / HOME)] = HOME

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Deletes what `initialize` made."""
        if version != "editable":
            shutil.rmtree(self.made)


def lay_out(root: Path, into: Path) -> None:
    """Writes the package as it is installed, from the checkout `root`, into the folder `into`."""
    home = into / HOME
    for package in PACKAGES:
        copied(root / package, home / package)
    copied(root / HOME, home)
    (home / "app.py").write_text(moved((root / "app.py").read_text("utf-8"), "app.py"), "utf-8")
    shutil.copyfile(root / "README.md", home / "README.md")  # an experiment reads it
    shutil.copytree(root / "assets", home / "assets", ignore=left_out)


def copied(source: Path, target: Path) -> None:
    """Copies a folder of modules with their imports rewritten, and its data files as they are."""
    for path in sorted(source.rglob("*")):
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            place.write_text(moved(path.read_text("utf-8"), str(path)), "utf-8")
        else:
            shutil.copyfile(path, place)


def left_out(folder: str, names: list[str]) -> set[str]:
    """For `shutil.copytree`: weights that another distribution installs, and the settings of formatters."""
    later = Path(folder).name in LATER
    return {name for name in names if name.startswith(".") or (later and name.endswith(".safetensors"))}


def moved(source: str, name: str) -> str:
    """A module's source with its imports of our packages rewritten to where they lie in the wheel.

    Raises SyntaxError for `import decoders.x`, which binds the name `decoders` and cannot move: write
    `from decoders import x`.
    """
    lines = source.splitlines(keepends=True)
    for node in statements(ast.parse(source, name)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and is_ours(node.module):
            replace(lines, node, f"from {node.module}", f"from {HOME}.{node.module}")
        elif isinstance(node, ast.Import) and any(is_ours(alias.name) for alias in node.names):
            (alias,) = node.names  # one module per statement, as ruff writes them
            if alias.asname:
                replace(lines, node, f"import {alias.name}", f"import {HOME}.{alias.name}")
            elif "." not in alias.name:
                replace(lines, node, f"import {alias.name}", f"from {HOME} import {alias.name}")
            else:
                raise SyntaxError(f"{name}, line {node.lineno}: write from ... import, not {alias.name}")
    return "".join(lines)


def statements(tree: ast.Module) -> list[ast.AST]:
    """Every statement of a module, at any depth, without what they are made of: imports are statements, and
    to look through all expressions takes as long as to parse the file.
    """
    found: list[ast.AST] = [tree]
    for node in found:
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            found += getattr(node, inside, [])
    return found


def is_ours(module: str | None) -> bool:
    """Whether an imported module is one of those that move."""
    return module is not None and module.partition(".")[0] in PACKAGES


def replace(lines: list[str], node: ast.stmt, old: str, new: str) -> None:
    """Replaces the beginning of a statement."""
    at, start = node.lineno - 1, node.col_offset
    if not lines[at][start:].startswith(old):
        raise SyntaxError(f"line {node.lineno} does not begin with {old!r}")
    lines[at] = lines[at][:start] + new + lines[at][start + len(old) :]
