"""Traces: the table of a file of records, or of several files, worst first; a click on a row opens it.

The file is kept compressed with its visit, and read again at a click.
"""

import zlib
from dataclasses import dataclass

import gradio as gr

from explorer.export.opened_files import HEADERS, Opened, cells, opened
from explorer.page.tabs.captioned import escaped

ABOUT = (
    "Worst first: what cannot be opened, what is untrusted, the lowest score, the largest divergence, the "
    "lowest mean log-probability. Click a row to open it as a lane."
)
WIDTHS = ["52px", "240px", "110px", "76px", "70px", "110px", "100px", "380px"]


@dataclass(frozen=True)
class Table:
    """The components of the table; `kept` holds the visit and the packed file."""

    body: gr.Column
    sentence: gr.Markdown
    rows: gr.Dataframe
    kept: gr.State

    @property
    def parts(self) -> list:
        """All components, as outputs of an event."""
        return [self.body, self.sentence, self.rows, self.kept]

    def updates(self, found: Opened, data: bytes, file: str, session: str) -> dict:
        """The component updates that show the records of a file."""
        unknown = len(found.unknown)
        left = f" Not recognised: {unknown:,}." if unknown else ""
        if len(found.counts) > 1:
            left += f" Of {len(found.counts):,} files with counts, the first is shown."
        return {
            self.body: gr.Column(visible=True),
            self.sentence: f"### {escaped(file)}\n**{len(found.records):,} records.**{left} {ABOUT}",
            self.rows: list(map(cells, found.rows())),
            self.kept: (session, file, zlib.compress(data, 1)),
        }

    def updates_to_hide(self) -> dict:
        """The component updates that hide the table and forget its file."""
        return {self.body: gr.Column(visible=False), self.kept: None}


def records_table() -> Table:
    """Declares the table, hidden at first."""
    with gr.Column(visible=False, elem_id="opened-records") as body:
        sentence = gr.Markdown()
        rows = gr.Dataframe(
            headers=list(HEADERS),
            label="Records",
            interactive=False,
            wrap=True,
            column_widths=WIDTHS,
            max_height=420,
        )
    return Table(body, sentence, rows, gr.State(None))


def file_of(kept: tuple) -> Opened:
    """The file that a table was made of, read again."""
    return opened(zlib.decompress(kept[2]), kept[1])
