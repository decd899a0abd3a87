"""Writes map.md: one line for each folder of decoders/, the first sentence of its package's docstring."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TITLE = """# The folders of decoders/

Each line is the first sentence of a folder's `__init__.py`. `python docs/map.py` writes this page.

"""


def first_sentence(file: Path) -> str:
    """The first sentence of a module's docstring, on one line. Raises ValueError if it has none."""
    said = ast.get_docstring(ast.parse(file.read_text("utf-8")))
    if not said:
        raise ValueError(f"{file.relative_to(ROOT)} has no docstring; say in one line what the folder holds.")
    return re.split(r"(?<=[.!?])\s", " ".join(said.split()), maxsplit=1)[0]


def lines() -> list[str]:
    """A list of folders in which each stands below the one that it lies in."""
    found = []
    for file in sorted((ROOT / "decoders").rglob("__init__.py"), key=lambda file: file.parent.parts):
        folder = file.parent.relative_to(ROOT)
        indent = "  " * (len(folder.parts) - 1)
        found.append(f"{indent}- `{folder.as_posix()}/`: {first_sentence(file)}")
    return found


def page() -> str:
    """The whole of map.md."""
    return TITLE + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "map.md").write_text(page(), "utf-8")
