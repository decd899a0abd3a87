"""The wheel: its imports are rewritten, and once installed elsewhere it does what the checkout does."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.sdist import SdistBuilder

import decoding_explorer
import hatch_build

ROOT = Path(hatch_build.__file__).parent
USED = """
import re
import sys
import httpx
import decoding_explorer as dx
from decoding_explorer import app
from decoding_explorer.__main__ import main

trace = dx.decode("speculative", "Once upon a time", max_new_tokens=12, num_assistant_tokens=4)
assert trace.text().startswith(", there was"), trace.text()
dx.show(trace).save(sys.argv[1])
cell = trace._repr_mimebundle_()
assert trace.text() in cell["text/plain"] and cell["image/svg+xml"].startswith("<svg")
dx.testing.check("speculative")
main(["papers"])
main(["models"])
try:
    dx.load("llama-tiny-moe")
except dx.Refusal as refusal:
    print(refusal)
demo, launch, _ = app.make(app.arguments(["--models", "embedded"]))
_, address, _ = demo.launch(server_name="127.0.0.1", prevent_thread_lock=True, **launch)
page = httpx.get(address).text
assert "Once upon a time" in page and '"strategy":"beam"' in page.replace(" ", "")
served = set(re.findall("explorer-files/[a-z]+[?][0-9a-f]+", page))
assert len(served) >= 3 and all(httpx.get(address + one).status_code == 200 for one in served)
demo.close()
assert not {name.partition(".")[0] for name in sys.modules} & {"decoders", "visualizers", "explorer"}
"""


@pytest.mark.parametrize(
    "written, moved",
    [
        ("from decoders.lane import Lane\n", "from decoding_explorer.decoders.lane import Lane\n"),
        ("if True:\n    import decoders\n", "if True:\n    from decoding_explorer import decoders\n"),
        ("import explorer.cli as cli\n", "import decoding_explorer.explorer.cli as cli\n"),
        (
            "from explorer import (\n    shipped,\n)\n",
            "from decoding_explorer.explorer import (\n    shipped,\n)\n",
        ),
        (
            "from decoders_of_others import x\nimport torch\n",
            "from decoders_of_others import x\nimport torch\n",
        ),
        ('"""Says from decoders import x."""\n', '"""Says from decoders import x."""\n'),
    ],
)
def test_imports_are_rewritten(written, moved):
    assert hatch_build.moved(written, "a file") == moved


def test_an_import_that_cannot_move_is_refused():
    with pytest.raises(SyntaxError, match="a file, line 1: write from ... import, not decoders.lane"):
        hatch_build.moved("import decoders.lane\n", "a file")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """run(*arguments): python with the wheel installed, in another folder with another HOME; its output."""
    folder = tmp_path_factory.mktemp("installed")
    build = f"from hatchling.build import build_wheel; build_wheel({str(folder / 'wheels')!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (folder / "wheels").iterdir()
    (told,) = re.findall(r"wheel \((\d+) MB\)", (ROOT / "README.md").read_text("utf-8"))
    assert f"{wheel.stat().st_size / 1e6:.0f}" == told
    with ZipFile(wheel) as packed:  # all that pip does with a wheel that has no data but its packages
        packed.extractall(folder / "packages")
    home = folder / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HOME": str(home), "PYTHONPATH": str(folder / "packages")}

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_installed_package_is_whole(installed, tmp_path):
    """The library decodes, shows and checks, in a notebook's cell, too; the command knows all papers and
    models; what is missing says how to get it; the page comes with its first picture and its scripts.
    """
    page = tmp_path / "page.html"
    said = installed("-c", USED, str(page))
    assert "explorer saved" in page.read_text("utf-8")
    assert "193 papers" in said and "llama-tiny-diffusion" in said
    assert (
        "The weights of 'llama-tiny-moe' are not installed here: pip install decoding-explorer-models."
        in said
    )


def test_the_source_distribution_has_what_the_wheel_is_made_of_and_nothing_else():
    included = {one.distribution_path for one in SdistBuilder(str(ROOT)).recurse_included_files()}
    needed = {"app.py", "hatch_build.py"}
    for package in (*hatch_build.PACKAGES, hatch_build.HOME):
        needed |= {file for file in files(package) if "__pycache__" not in file}
    later = {f"assets/models/{name}" for name in hatch_build.LATER}
    needed |= {
        file
        for file in files("assets")
        if not (file.rpartition("/")[0] in later and file.endswith(".safetensors"))
    }
    assert included == needed


def files(folder: str) -> set[str]:
    """The files of a folder of the checkout."""
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}


def test_the_second_distribution_has_the_version_and_the_models_that_the_first_expects():
    models = ROOT / "assets" / "models"
    project = tomllib.loads((models / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["version"] == decoding_explorer.__version__
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]
    assert {name.removeprefix("/") for name in included} == hatch_build.LATER
    assert {folder.name for folder in models.iterdir()} >= hatch_build.LATER
