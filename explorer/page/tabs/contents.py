"""A contents list on top of a long tab: it stays in sight and leads to the tab's sections.

assets/web/page/contents.js scrolls, marks the section on show, and hides those that the run does not have.
"""

import gradio as gr

from explorer.markup import h


def build(sections: dict[str, str]) -> gr.HTML:
    """Declares the list. sections: the id of a section's heading -> how the list calls it."""
    buttons = [h("button", {"type": "button", "data-to": name}, title) for name, title in sections.items()]
    nav = h("nav", {"class": "contents", "aria-label": "Sections of this tab"}, *buttons)
    return gr.HTML(nav, elem_classes="contents-place", padding=False, apply_default_css=False)
