"""Traces: the card for a file that contains only a server's counts, which cannot be replayed."""

from dataclasses import dataclass

import gradio as gr

from explorer.page.tabs.captioned import Captioned, captioned, escaped
from explorer.page.tabs.metrics import metrics_table, rows
from visualizers.analysis.speculation_report import counted

ABOUT = (
    "Imported counts, measured by the server; the rates are derived from them. They do not say which tokens "
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
        """All components, as outputs of an event."""
        return [self.body, self.sentence, self.metrics, *self.figure.parts]

    def updates(self, counts: dict, file: str, look: str) -> dict:
        """The component updates that show counts read by `decoders.trace.imports.vllm_counts`."""
        from visualizers.figures.draft_positions import counted_depths  # on demand: plotly is slow to import

        report = counted(counts)
        return {
            self.body: gr.Column(visible=True),
            self.sentence: f"### {escaped(file)}\n**{escaped(report['sentence'])}**",
            self.metrics: rows(report["metrics"]),
            **self.figure.updates(counted_depths(report, look)),
        }

    def updates_to_hide(self) -> dict:
        """The component updates that hide the card."""
        return {self.body: gr.Column(visible=False)}


def card() -> Card:
    """Declares the card, hidden at first."""
    with gr.Column(visible=False, elem_id="imported-counts") as body:
        sentence = gr.Markdown()
        gr.Markdown(ABOUT, elem_classes="caption")
        figure = captioned()
        table = metrics_table("The server's counts")
    return Card(body, sentence, table, figure)
