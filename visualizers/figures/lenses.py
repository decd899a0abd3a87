"""The figures of lenses by name. Each is a function, in the files lens_*.py, that takes a frame, the look and
the picture's options; a lens names its figures.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import plotly.graph_objects as go

import visualizers.figures as folder
from decoders.lenses.frame import LensFrame


@cache
def known() -> dict[str, Callable[..., go.Figure]]:
    """Name -> function that draws the figure."""
    names = [
        module.name for module in pkgutil.iter_modules(folder.__path__) if module.name.startswith("lens_")
    ]
    modules = [importlib.import_module(f"{folder.__name__}.{name}") for name in names]
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name in module.FIGURES
    }


def figures(names: tuple[str, ...], frame: LensFrame, look: str, options: dict[str, Any]) -> list[go.Figure]:
    """The figures of a lens; each function gets the options that it takes."""
    made = []
    for name in names:
        draw = known()[name]
        own = inspect.signature(draw).parameters
        made.append(draw(frame, look, **{key: value for key, value in options.items() if key in own}))
    return made
