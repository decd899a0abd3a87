"""The tabs of the page, one file each: its `build` declares the tab's components and what happens in them.

A new tab is a file here with such a function and two lines in explorer/page/layout.py. What Gradio has no
component for is drawn by our own scripts (assets/web/page) in a gr.HTML that `drawn` declares.
"""

from collections.abc import Callable, Sequence

import gradio as gr

PLACE = "ExplorerPage.place({name!r}, element);"  # see assets/web/page/mount.js
# Gradio gives the browser the file's address; the button is for one click, and has none the next time.
FETCH = """(file) => {
    const link = document.createElement("a");
    if (file) Object.assign(link, { href: file.url, download: file.orig_name }).click();
    return null;
}"""
# For an event whose progress nobody is shown. Without the second, Gradio's page updates each component of all
# events whenever one event changes its state: seconds, where events have dozens of outputs.
UNTRACKED = {"show_progress": "hidden", "show_progress_on": []}
LACKING = "This page lacks its own scripts: open it at the address that the app printed."


def tab(title: str) -> gr.Tab:
    """A tab; its name in links between tabs is its title in small letters."""
    return gr.Tab(title, id=title.lower(), elem_id=f"explorer-tab-{title.lower()}")


def drawn(
    name: str, on_load: str = "", server_functions: Sequence[Callable] = (), value: str = ""
) -> gr.HTML:
    """A component in which our scripts draw the part of the page that they call `name`.

    `on_load`: further JavaScript for when it is there; `server_functions`: what that may ask for.
    """
    return gr.HTML(
        value,
        html_template='<div class="explorer"></div>',
        js_on_load=f"if (window.ExplorerPage) {{ {PLACE.format(name=name)} {on_load} }} "
        f"else element.textContent = {LACKING!r};",
        server_functions=list(server_functions) or None,
        apply_default_css=False,
        elem_id=f"explorer-drawn-{name}",
        elem_classes="explorer-drawn",
    )


def carried(on_load: str = "", value: str = "") -> gr.HTML:
    """A component that shows nothing; its value is what our scripts and the server tell each other.

    `on_load`: JavaScript for when it is there, in which `props.value` is the value.
    """
    return gr.HTML(
        value,
        html_template="<span></span>",
        js_on_load=f"if (window.ExplorerPage) {{ {on_load} }}",
        visible="hidden",
    )
