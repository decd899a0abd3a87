"""Text files are UTF-8 on every system: whatever reads or writes one says so."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AT = {"read_text": 0, "write_text": 1}  # name of a call -> which argument is its encoding


def unnamed(source: str) -> list[str]:
    """The calls of a source that read or write a text file in whatever encoding the system has."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if reads_text(call) and not names_encoding(call)]


def reads_text(call: ast.Call) -> bool:
    """Whether a call is `read_text`, `write_text`, or the built-in `open` in a text mode."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in AT
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    binary = any(isinstance(mode, ast.Constant) and "b" in str(mode.value) for mode in modes)
    return isinstance(call.func, ast.Name) and call.func.id == "open" and not binary


def names_encoding(call: ast.Call) -> bool:
    """Whether an encoding is among the arguments of a call."""
    place = AT.get(call.func.attr) if isinstance(call.func, ast.Attribute) else 3
    return len(call.args) > place or any(word.arg == "encoding" for word in call.keywords)


def test_no_text_file_is_in_the_encoding_of_the_system():
    folders = ("decoders", "visualizers", "explorer", "decoding_explorer", "tests")
    paths = [ROOT / "app.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    found = {str(path): calls for path in paths if (calls := unnamed(path.read_text("utf-8")))}
    assert found == {}


def test_a_call_without_an_encoding_is_seen():
    source = "p.read_text()\np.write_text(x)\nopen(p)\nopen(p, 'rb')\np.read_text('utf-8')\np.open()"
    assert unnamed(source) == ["p.read_text()", "p.write_text(x)", "open(p)"]
