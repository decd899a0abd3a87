"""Imports Gradio without the type stubs that it writes at every start.

For each class of components Gradio parses the source file of that class and writes the signatures of its
events into a .pyi file beside it, which editors read and no program does: on Python 3.11 that is two fifths
of what `import gradio` computes. It skips classes that come from no file; while this import runs, its own
classes say so.
"""

import inspect
import sys
from collections.abc import Callable


def import_gradio() -> None:
    """Nothing is different afterwards; nothing happens if Gradio is imported already."""
    if "gradio" in sys.modules:
        return
    getfile = inspect.getfile
    inspect.getfile = without_gradio(getfile)
    try:
        import gradio  # noqa: F401 (for its place in sys.modules)
    finally:
        inspect.getfile = getfile


def without_gradio(getfile: Callable) -> Callable:
    """`inspect.getfile` that knows no file of a class of Gradio's."""

    def file_of(thing) -> str:
        if isinstance(thing, type) and thing.__module__.partition(".")[0] == "gradio":
            raise OSError("not needed: no type stub is to be written")
        return getfile(thing)

    return file_of
