"""The tab Decode: the lanes with their player, bars and inspector, drawn by our own scripts, and Compare.

The lanes are on screen before Gradio has started and move in when it has (explorer/page/serve.py,
assets/web/page/app.js).
"""

from collections.abc import Callable, Sequence

import gradio as gr

from explorer.page.tabs import compare, drawn
from explorer.runs.scheduler import Runs


def build(on_screen: gr.HTML, look: gr.HTML, runs: Runs, server_functions: Sequence[Callable]) -> gr.HTML:
    """Declares the lanes, and Compare below them. `server_functions`: all that the page's scripts may ask
    the server for; `on_screen`: see on_screen.py; `look`: its value is the page's theme.
    """
    lanes = drawn("decode", "ExplorerPage.attach(server);", server_functions)
    compare.build(on_screen, look, runs)
    return lanes
