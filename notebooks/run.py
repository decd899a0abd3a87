"""Runs the notebooks of this folder and stores their outputs: `python notebooks/run.py [NAME.ipynb ...]`.

All code cells run in this process, each notebook in a namespace of its own. Like a notebook, it keeps what a
cell prints and shows the value of its last expression. A cell's `%pip` line does nothing here.
"""

import ast
import io
import json
import re
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).resolve().parent
SHOWN = ("text/plain", "image/svg+xml")  # of an output: a page of 2.6 MB is left out


def read(path: Path) -> dict:
    """A notebook."""
    return json.loads(path.read_text("utf-8"))


def run(notebook: dict) -> dict[str, Any]:
    """Runs the code cells in their order and puts their outputs into them; returns the variables."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, 1):
        cell.update(execution_count=number, outputs=outputs("".join(cell["source"]), number, variables))
    return variables


def outputs(source: str, number: int, variables: dict[str, Any]) -> list[dict]:
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(re.sub(r"^( *)%pip .*$", r"\1pass", source, flags=re.MULTILINE))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), variables)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), variables)
    made: list[dict] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        made.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {kind: text.splitlines(keepends=True) for kind, text in shown(value).items()}
        result = {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        made.append(result)
    return made


def shown(value: object) -> dict[str, str]:
    """A value as a notebook shows it, by kind."""
    bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {"text/plain": repr(value)}
    return {kind: bundle[kind] for kind in SHOWN if kind in bundle}


def main(names: list[str]) -> None:
    """Runs the notebooks of these names, or all."""
    sys.path.insert(0, str(FOLDER.parent))  # in a checkout
    for path in map(FOLDER.joinpath, names) if names else sorted(FOLDER.glob("*.ipynb")):
        notebook = read(path)
        with TemporaryDirectory() as folder, chdir(folder):  # for what cells save
            run(notebook)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
