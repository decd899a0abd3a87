"""What is known of strategies without importing their files, which would bring in torch and transformers:
which module declares which, read from the files, and their declarations, in assets/strategies.json.

publish_strategies.py writes the declarations; a test checks that they are up to date.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from decoders.packages import assets
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
DECLARED = re.compile(r'\n@(?:strategy|speculative|draft_and_verify)\(.*?\bname="(\w+)"', re.DOTALL)


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


def published_path() -> Path:
    """The file with the declarations of all strategies of the package."""
    return assets() / "strategies.json"


@cache
def published_declarations() -> dict[str, dict]:
    """Name of a strategy -> its declaration, as `Strategy.declaration` gives it, in family order."""
    published = json.loads(published_path().read_text("utf-8"))
    return {
        one["name"]: one | {"parameters": [published["parameters"][index] for index in one["parameters"]]}
        for one in published["strategies"]
    }


@cache
def recorded_views() -> dict[str, list[str]]:
    """Name of a strategy -> the views of its recorded run, in assets/views.json; see
    explorer/catalog/publish_views.py.
    """
    return json.loads((assets() / "views.json").read_text("utf-8"))


def views_before_run(name: str, first: str) -> tuple[str, ...]:
    """The views that a strategy offers before it has run: `first`, and those of its recorded run. A strategy
    without a recorded run gets the views that all recorded runs which open with `first` have in common.
    """
    recorded, usual = recorded_views(), ["entropy", "dependencies", "text"]
    alike = [views for views in recorded.values() if views[0] == first] or [usual]
    shared = [view for view in alike[0] if all(view in views for views in alike)]
    return tuple(dict.fromkeys((first, *recorded.get(name, shared))))


def read_parameters(name: str) -> tuple[Parameter, ...] | None:
    """The parameters of a strategy; None if it is newer than the published declarations."""
    declared = published_declarations().get(name)
    if declared is None:
        return None
    return tuple(
        Parameter(**one | {"choices": tuple(one.get("choices", ()))}) for one in declared["parameters"]
    )
