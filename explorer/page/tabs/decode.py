"""The tab Decode: the panel Models, the lanes with their player, bars and inspector, and the section Compare.

Our own scripts draw the lanes. They are on screen before Gradio has started and are then moved into its page
(explorer/page/serve.py, assets/web/page/mount.js).
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
    """Declares the contents of the tab and returns the component of the lanes.

    `server_functions`: all functions that the page's scripts may call; `on_screen`: see on_screen.py; `look`:
    its value is the page's theme.
    """
    models.build(loader)
    lanes = drawn("decode", "ExplorerPage.attach(server);", server_functions)
    compare.build(on_screen, look, runs)
    return lanes
