"""The tabs of the page, one module each, whose `build` declares the tab's components and events.

A new tab is a module here with such a function and two lines in explorer/page/layout.py. Where Gradio has no
suitable component, our own scripts (assets/web/page) draw in a gr.HTML that `drawn` declares.
"""

from collections.abc import Callable, Sequence

import gradio as gr
from gradio.events import Dependency

PLACE = "ExplorerPage.place({name!r}, element);"  # see assets/web/page/mount.js
# Downloads the file whose address Gradio has given the browser; returning null clears it for the next click.
FETCH = """(file) => {
    const link = document.createElement("a");
    if (file) Object.assign(link, { href: file.url, download: file.orig_name }).click();
    return null;
}"""
# For events that show no progress. Without the second entry, Gradio's page updates every component of every
# event whenever one event changes its state, which takes seconds where events have dozens of outputs.
UNTRACKED = {"show_progress": "hidden", "show_progress_on": []}
LACKING = "This page lacks its own scripts: open it at the address that the app printed."


def mark_at_work(name: str) -> str:
    """JavaScript of an event with several inputs that marks the element with the id `name` as at work
    (everyone.css), so that what is old does not look like the answer. `unmark` takes the mark away.
    """
    return f"(...given) => {{ document.getElementById('{name}')?.classList.add('at-work'); return given; }}"


def unmark(work: Dependency, name: str) -> None:
    """Takes the mark of `mark_at_work` away when the event has been answered."""
    js = f"() => {{ document.getElementById('{name}')?.classList.remove('at-work'); }}"
    work.then(None, None, None, js=js, api_visibility="private")


def tab(title: str) -> gr.Tab:
    """Declares a tab; links between tabs use its title in lower case."""
    return gr.Tab(title, id=title.lower(), elem_id=f"explorer-tab-{title.lower()}")


def drawn(
    name: str, on_load: str = "", server_functions: Sequence[Callable] = (), value: str = ""
) -> gr.HTML:
    """Declares a component in which our scripts draw the part of the page that they call `name`.

    `on_load`: further JavaScript to run once the component exists; `server_functions`: what it may call.
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
    """Declares a hidden component whose value carries data between our scripts and the server.

    `on_load`: JavaScript to run once the component exists; in it, `props.value` is the value.
    """
    return gr.HTML(
        value,
        html_template="<span></span>",
        js_on_load=f"if (window.ExplorerPage) {{ {on_load} }}",
        visible="hidden",
    )
