"""The tab Decode: the lanes with their player, bars, inspector and comparison, drawn by our own scripts.

They are on screen before Gradio has started and move in when it has (explorer/page/serve.py,
assets/web/page/app.js).
"""

from collections.abc import Callable, Sequence

import gradio as gr

from explorer.page.tabs import drawn


def build(server_functions: Sequence[Callable]) -> gr.HTML:
    """Declares the lanes. `server_functions`: all that the page's scripts may ask the server for."""
    return drawn("decode", "ExplorerPage.attach(server);", server_functions)
