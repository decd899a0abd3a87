"""Figures of the tabs: each is a gr.Plot with a caption below it, in a column that wraps on a phone.

A figure is drawn when it comes near the window (assets/web/page/figures-in-sight.js) and can be read with the
arrow keys (figure-keys.js).
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

# Gradio loads Plotly's 4.6 MB when the first figure arrives. We fetch them earlier, as soon as the page is
# loaded and idle, and run them while the server makes the figures of a tab.
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

    def updates(self, figure: Any) -> dict:
        """The component updates that show a Plotly figure and its caption."""
        return {self.plot: figure, self.words: caption_of(figure)}


def captioned(figure: Any = None, wide: bool = False) -> Captioned:
    """Declares the components of a figure. `wide`: the figure gets a row of its own and scrolls if the row is
    too narrow.
    """
    words = None if figure is None else caption_of(figure)
    with gr.Column(min_width=900 if wide else 420, elem_classes="figure wide" if wide else "figure"):
        plot = gr.Plot(figure, show_label=False, container=False)
        return Captioned(plot, gr.Markdown(words, elem_classes="caption"))


def caption_of(figure: Any) -> str:
    """The caption of a Plotly figure, as Markdown."""
    from visualizers.figures import caption  # on demand: plotly is slow to import

    return escaped(caption(figure))


def look_of(theme: str) -> str:
    """The look of figures for a theme of the page, as its script reports it."""
    return "dark" if theme == "dark" else "light"


def escaped(text: str) -> str:
    """Escapes a text so that Markdown shows it unchanged."""
    return CODE.sub(r"\\\1", text)
