"""Figures of the tabs: each a gr.Plot with a caption in words below it, in a column that wraps on a phone.

Drawn when it comes near the window (assets/web/page/figures-in-sight.js), read by arrow keys
(figure-keys.js). Knows Gradio's components and that a figure has a caption, no figure by name.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

# Gradio reads Plotly's 4.6 MB when the first figure arrives. A browser may have them sooner: fetched once the
# page is there and rests, and run while the server makes what a tab will show.
PLOTLY = sorted((Path(gr.__file__).parent / "templates/frontend/assets").glob("PlotlyPlot-*.js"))[0].name
FETCH_PLOTLY = f"""() => {{ setTimeout(() => {{
    const link = document.createElement("link");
    document.head.append(Object.assign(link, {{ rel: "modulepreload", href: "assets/{PLOTLY}" }}));
}}, 1000); }}"""
RUN_PLOTLY = f"() => {{ import(new URL('assets/{PLOTLY}', document.baseURI)); }}"
CODE = re.compile(r"([\\`*_{}\[\]<>#|~$])")


@dataclass(frozen=True)
class Captioned:
    """The two components of a figure."""

    plot: gr.Plot
    words: gr.Markdown

    @property
    def parts(self) -> tuple[gr.Plot, gr.Markdown]:
        """Both, as outputs of an event."""
        return self.plot, self.words

    def shows(self, figure: Any) -> dict:
        """The updates after which they show a Plotly figure."""
        return {self.plot: figure, self.words: caption_of(figure)}


def captioned(figure: Any = None, wide: bool = False) -> Captioned:
    """Declares the components of a figure. `wide`: it has a row of its own, and scrolls where that is
    narrow.
    """
    words = None if figure is None else caption_of(figure)
    with gr.Column(min_width=900 if wide else 420, elem_classes="figure wide" if wide else "figure"):
        plot = gr.Plot(figure, show_label=False, container=False)
        return Captioned(plot, gr.Markdown(words, elem_classes="caption"))


def caption_of(figure: Any) -> str:
    """The caption of a Plotly figure, as Markdown."""
    from visualizers.figures import caption  # only when one is looked at: plotly takes its time

    return escaped(caption(figure))


def look_of(theme: str) -> str:
    """The look of figures in a theme of the page, as its script tells it."""
    return "dark" if theme == "dark" else "light"


def escaped(text: str) -> str:
    """A text that Markdown takes for no markup."""
    return CODE.sub(r"\\\1", text)
