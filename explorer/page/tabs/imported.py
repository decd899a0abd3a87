"""Traces: the card of a file that holds a server's counts alone. There is nothing in them to replay.

Knows what visualizers.analysis.speculation_report makes of counts, no run and no lane.
"""

from dataclasses import dataclass

import gradio as gr

from explorer.page.tabs.captioned import Captioned, captioned, escaped
from explorer.page.tabs.metrics import metrics_table, rows
from visualizers.analysis.speculation_report import counted

ABOUT = (
    "Imported counts: measured by the server; the rates are derived. They do not say which tokens "
    "were drafted, so there is no lane to replay and no list of rejected tokens."
)


@dataclass(frozen=True)
class Card:
    """The components of the card."""

    body: gr.Column
    sentence: gr.Markdown
    metrics: gr.Dataframe
    figure: Captioned

    @property
    def parts(self) -> list:
        """All of them, as outputs of an event."""
        return [self.body, self.sentence, self.metrics, *self.figure.parts]

    def shows(self, counts: dict, file: str, look: str) -> dict:
        """The updates after which the card shows what `decoders.trace.vllm_counts` has read."""
        from visualizers.figures.draft_places import counted_depths  # plotly takes its time

        counts_read = counted(counts)
        return {
            self.body: gr.Column(visible=True),
            self.sentence: f"### {escaped(file)}\n**{escaped(counts_read['sentence'])}**",
            self.metrics: rows(counts_read["metrics"]),
            **self.figure.shows(counted_depths(counts_read, look)),
        }

    def hides(self) -> dict:
        """The updates after which it is gone."""
        return {self.body: gr.Column(visible=False)}


def card() -> Card:
    """Declares the card, unseen."""
    with gr.Column(visible=False, elem_id="imported-counts") as body:
        sentence = gr.Markdown()
        gr.Markdown(ABOUT, elem_classes="caption")
        figure = captioned()
        table = metrics_table("The server's counts")
    return Card(body, sentence, table, figure)
