"""What starts the page: Gradio comes without writing type stubs, and torch is imported behind the page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START = """
import inspect, json, sys
from explorer.page import import_gradio
written, getfile, imports = [], inspect.getfile, import_gradio.import_gradio
sys.addaudithook(lambda event, args: event == "open" and written.append(str(args[0])))

def watched():
    imports()
    said["same"] = inspect.getfile is getfile

import_gradio.import_gradio, said = watched, {}
import app
app.make(app.arguments([]))
import gradio
said["stubs"] = [path for path in written if path.endswith(".pyi")]
said["events"] = [str(one) for one in gradio.Textbox.EVENTS if callable(getattr(gradio.Textbox, str(one)))]
heavy = ("torch", "transformers", "scipy", "plotly", "visualizers.figures")
said["imported"] = [name for name in heavy if name in sys.modules]
sys.path.insert(0, sys.argv[1])
import own_component
print(json.dumps(said))
"""
COMPONENT = """
from gradio.components.base import Component
class Own(Component):
    EVENTS = ["change"]
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> tuple[dict, Path]:
    """What a process of its own says after it has made the page, and where a component of one's own lies."""
    folder = tmp_path_factory.mktemp("component")
    (folder / "own_component.py").write_text(COMPONENT, "utf-8")
    command = [sys.executable, "-c", START, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), folder


def test_gradio_writes_no_type_stubs_while_it_is_imported(started):
    says, _ = started
    assert {Path(stub).name for stub in says["stubs"]} <= {"api_component.pyi"}  # which it imports later


def test_afterwards_all_is_as_it_was(started):
    says, folder = started
    assert says["same"] and "submit" in says["events"]
    stub = folder / "own_component.pyi"  # Gradio goes on to write them for classes that are made later;
    assert "def change(self" in stub.read_text(
        encoding="utf-8"
    )  # if it does so no more, import_gradio.py can go


def test_the_page_is_made_before_torch_and_figures_are_imported(started):
    says, _ = started
    assert says["imported"] == []
