"""A saved run: one HTML file with the page's own scripts, the player and the whole run, for disk or notebook.

The page starts as in the app; instead of a server, assets/web/replay/offline.js answers its requests from
data that is computed here. Imports no gradio. Nothing in the file can reach a network: its
Content-Security-Policy forbids every request, and every script except its own.
"""

import base64
import functools
import gzip
import hashlib
import html
import re
from pathlib import Path
from typing import Any

from decoders import files
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.export import comparison, page_files, palette, saved_comparison
from explorer.export.bars import Around
from explorer.export.file_names import dashed
from explorer.export.foreign_traces import declarations, viewed
from explorer.export.help_text import help_html
from explorer.export.lane_picture import picture
from explorer.export.page_data import page_data
from explorer.export.run_file import container, pack, title
from explorer.inspector.card import card
from explorer.inspector.code_drawer import drawer
from explorer.inspector.token_facts import Facts
from explorer.runs.run_state import Run, answer
from explorer.runs.scheduler import Runs
from visualizers.analysis.comparison import compare
from visualizers.analysis.cost_csv import cost_table
from visualizers.registry import titles

SAVED = page_files.ASSETS / "web" / "replay"
NOTHING = {"view": "text", "ops": 2**31, "rows": 2**31}  # a cursor beyond the end


def replay_html(
    traces: list[Trace],
    setup: dict | None = None,
    lesson: dict | None = None,
    depths: list[dict[int, list[int]]] | None = None,
) -> str:
    """The whole page as one HTML text, see `replay_blobs`."""
    title, blobs = replay_blobs(traces, setup, lesson, depths)
    packed = {name: pack(blob) for name, blob in blobs.items()}
    return document(title, packed | {"plotly": plotly()[0]})


def replay_blobs(
    traces: list[Trace],
    setup: dict | None = None,
    lesson: dict | None = None,
    depths: list[dict[int, list[int]]] | None = None,
) -> tuple[str, dict[str, Any]]:
    """The title of a page with one lane per trace, and the data that its scripts ask for by name.

    `setup`: the settings as in the app's page (see `run_file.settings`), derived from the traces by default.
    `lesson`: a lesson that guides through this run, `{lesson, message}`, see explorer/lessons. `depths`: the
    decision depths that a lens has measured for each lane, {} for none. Raises Refusal with one sentence
    unless there are one to four traces.
    """
    run = container(traces, setup)
    declared = declarations(traces)
    run["setup"] = setup = viewed(run["setup"], declared, traces)
    shown = Runs(None).show(traces, run_id="saved")
    around = Around(help_html(served=False), saved=True, depths=any(depths or []))
    first = page_data(shown, setup, list(declared.values()), setup["models"], around, saved=True)
    first |= {"lesson": lesson} if lesson else {}
    del first["example"]["answer"]["now"]  # so that the same run always gives the same file
    compared = compare(traces)
    blobs = {
        "first": first,
        "rest": rest(shown, setup["lanes"])
        | {"marks": comparison.marks(compared), "depths": depths or [{} for _ in traces]},
        "run": run,
    }
    blobs["rest"] = rounded(blobs["rest"])
    blobs["pictures"] = [lane_pictures(record.trace, record.views()) for record in shown.records]
    blobs["comparison"] = rounded(saved_comparison.comparison(compared))
    return title(setup["prompt"]), blobs


def rounded(value: object) -> object:
    """Rounds all floats in `value` to seven significant digits, more than is ever shown; this makes the file
    a fifth smaller. Traces are not rounded.
    """
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def rest(run: Run, shown: list[dict]) -> dict:
    """What a saved page needs after its first picture: every other view, every token's card, the costs.

    `shown`: the lanes of the first picture.
    """
    from explorer.inspector.knob_form import with_form  # needs torch
    from explorer.inspector.knobs import knobs

    traces = [record.trace for record in run.records]
    facts = [Facts(trace) for trace in traces]
    return {
        "lanes": [other_views(run, i, one.views(), shown[i]["view"]) for i, one in enumerate(run.records)],
        "nodes": [{str(node): card(one.of(node), live=False) for node in one.nodes.token} for one in facts],
        "cells": [cells(one) for one in facts],
        "code": [drawer(trace) for trace in traces],
        "knobs": [with_form(knobs(trace), live=False) for trace in traces],
        "costs": cost_table(traces),
    }


def cells(lane_facts: Facts) -> dict[str, dict]:
    """The cards of all cells of a parallel decoder, by "position,iteration"."""
    all_cells = [cell for column in lane_facts.cells.values() for cell in column]
    return {
        f"{c.position},{c.iteration}": card(lane_facts.of_cell(c.position, c.iteration), live=False)
        for c in all_cells
    }


def other_views(run: Run, index: int, views: list[str], shown: str) -> dict[str, dict]:
    """Head and ops of each view of a lane except the one that the first picture shows."""
    answers = {}
    for view in dict.fromkeys([*views, "text"]):
        cursors = [dict(NOTHING) for _ in run.records]
        cursors[index] = {"view": view, "ops": 0, "rows": 0}
        if view != shown:
            whole = answer(run, cursors)["lanes"][index]
            answers[view] = {"head": whole["head"], "ops": whole["ops"]}
    return answers


def lane_pictures(trace: Trace, views: list[str]) -> dict[str, dict]:
    """Every view of the whole lane as an SVG with the ending of its file name, since a saved page cannot make
    these itself. A view that cannot draw this trace has an `error` instead.
    """
    drawn = {}
    for view in dict.fromkeys([*views, "text"]):
        try:
            drawn[view] = {"ending": f"{dashed(titles()[view])}.svg", "svg": picture(trace, view)}
        except Refusal as error:
            drawn[view] = {"error": str(error)}
    return drawn


@functools.cache
def plotly() -> tuple[bytes, str]:
    """plotly.js, compressed, and its hash for the Content-Security-Policy."""
    from plotly.offline import get_plotlyjs  # on demand: slow to import, and only saved pages need it

    text = get_plotlyjs()
    return gzip.compress(text.encode(), mtime=0), hashed(text)


def hashed(text: str) -> str:
    """The hash of a script, in the form of the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def document(title: str, blobs: dict[str, bytes]) -> str:
    """The HTML file: styles, compressed data, scripts, and a policy under which nothing else can run."""
    paths = [*page_files.page_scripts(), *page_files.drawing_scripts(), *sorted(SAVED.glob("*.js"))]
    scripts = [page_files.THEME, *(script(path) for path in paths)]
    hashes = " ".join([*map(hashed, scripts), plotly()[1]])
    # Scripts are allowed by hash. None of them uses eval; it is allowed for the drivers that test the page.
    policy = (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    sheets = [*page_files.sheets(), SAVED / "saved.css"]
    styles = "\n".join([palette.css(), *map(page_files.text, sheets)])
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{styles}</style>",
            f"<script>{scripts[0]}</script></head>\n<body>",
            '<div id="explorer" class="explorer saved"></div>',
            "<noscript>This is a saved run of Decoding Explorer; it needs JavaScript to be drawn.</noscript>",
            *(
                f'\n<script type="text/plain" id="explorer-{name}">{base64.b64encode(blob).decode()}</script>'
                for name, blob in blobs.items()
            ),
            *(f"\n<script>{text}</script>" for text in scripts[1:]),
            "</body></html>\n",
        ]
    )


def script(path: Path) -> str:
    """One of our scripts, escaped so that nothing in it ends the script element or begins a comment."""
    return re.sub(r"<(/script|!--)", r"\\u003c\1", page_files.text(path), flags=re.IGNORECASE)


class Show:
    """A replay for a notebook cell, in a sandboxed frame that can run only its own scripts."""

    def __init__(self, page: str, height: int):
        self.page, self.height = page, height

    def _repr_html_(self) -> str:
        # ASCII only: a script read in another encoding would no longer match its hash.
        page = html.escape(self.page).encode("ascii", "xmlcharrefreplace").decode()
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" '
            f'title="Decoding Explorer" style="width:100%;height:{self.height}px;border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return 'A page that a notebook shows below the cell; .save("page.html") writes it to a file.'

    def save(self, path: str | Path) -> None:
        """Writes the same page as a file that works from disk."""
        files.write(path, self.page)


def show(*traces: Trace, height: int = 700) -> Show:
    """The replay of one to four traces, for a notebook: as the value of a cell it is shown below the cell."""
    return Show(replay_html(list(traces)), int(height))
