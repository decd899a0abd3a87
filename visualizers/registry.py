"""Finds every module of visualizers/views and builds a view by name."""

import importlib
import pkgutil
from functools import cache

from decoders.refusal import Refusal
from decoders.view_names import current
from visualizers import views
from visualizers.scene.layout import to_json
from visualizers.scene.view import VIEWS, Header, View


def names() -> list[str]:
    """The names of all views, in alphabetical order."""
    _import_all()
    return sorted(VIEWS)


@cache  # looking through the folders takes a millisecond, and each view that is built asks
def _import_all() -> None:
    for module in pkgutil.walk_packages(views.__path__, f"{views.__name__}."):
        importlib.import_module(module.name)


def titles() -> dict[str, str]:
    """Name -> title as shown."""
    return {name: VIEWS[name].title for name in names()}


def build(name: str, header: Header) -> View:
    """A fresh view: `.head()` gives its layout, `.feed(step)` its ops; its former name will do.

    Raises Refusal with one sentence if there is no such view.
    """
    name = current(name)
    if name not in names():
        raise Refusal(f"There is no view named {name!r}; choose one of: {', '.join(sorted(VIEWS))}.")
    return VIEWS[name](header)


def head_of(built: View) -> dict:
    """A view's title and layout, as the player's `reset` takes them."""
    return {"title": built.title, **built.head().to_json()}


def deltas(name: str, header: Header, steps) -> tuple[dict, list[dict]]:
    """(head, deltas) of a whole trace: what the player's `reset` and `feed` take."""
    built = build(name, header)
    head = head_of(built)
    return head, [{"step": step.index, "ops": to_json(built.feed(step))} for step in steps]
