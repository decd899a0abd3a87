"""The tab Decode: the panel Models, the lanes with their player, bars and inspector, drawn by our own
scripts, and Compare.

The lanes are on screen before Gradio has started and move in when it has (explorer/page/serve.py,
assets/web/page/mount.js).
"""

from collections.abc import Callable, Sequence

import gradio as gr

from explorer.page.tabs import compare, drawn, models
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs


def build(
    on_screen: gr.HTML,
    look: gr.HTML,
    runs: Runs,
    loader: Loader,
    server_functions: Sequence[Callable],
) -> gr.HTML:
    """Declares what is in the tab, and gives the lanes.

    `server_functions`: all that the page's scripts may ask the server for; `on_screen`: see on_screen.py;
    `look`: its value is the page's theme.
    """
    models.build(loader)
    lanes = drawn("decode", "ExplorerPage.attach(server);", server_functions)
    compare.build(on_screen, look, runs)
    return lanes
