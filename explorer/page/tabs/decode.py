"""The tab Decode: the panel Models, and below it the lanes with their player, bars, inspector and comparison,
drawn by our own scripts.

The lanes are on screen before Gradio has started and move in when it has (explorer/page/serve.py,
assets/web/page/app.js).
"""

from collections.abc import Callable, Sequence

import gradio as gr

from explorer.page.tabs import drawn, models
from explorer.runs.model_pool import Loader


def build(server_functions: Sequence[Callable], loader: Loader) -> gr.HTML:
    """Declares what is in the tab, and gives the lanes.

    `server_functions`: all that the page's scripts may ask the server for.
    """
    models.build(loader)
    return drawn("decode", "ExplorerPage.attach(server);", server_functions)
