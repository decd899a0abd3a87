"""Writes lanes to a file, as its suffix says."""

from pathlib import Path

from decoders import files
from decoders.trace.trace import Trace
from explorer.export.replay_page import replay_html
from explorer.export.run_file import container, pack

PAGES = (".html", ".htm")  # suffixes of pages; all others are data


def save(out: Path, setup: dict, traces: list[Trace]) -> None:
    """Writes a page, a run or, for a single lane, a trace."""
    if out.name.endswith(PAGES):
        files.write(out, replay_html(traces, setup))
    elif len(traces) == 1:
        traces[0].save(out)
    else:
        files.write(out, pack(container(traces, setup), compressed=out.suffix == ".gz"))
