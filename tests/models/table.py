"""The table of architectures in docs/models.md, written and read."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.models.check import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "models.md"
HEAD = "| architecture | engine | equal to `generate` | strategies refused | why |\n|---|---|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(\|.*\n)*")
ENGINES = {  # class -> as the page calls it
    "Engine": "tree",
    "RecurrentEngine": "tree with states",
    "OwnCacheEngine": "copies of its cache",
    "SequenceEngine": "whole sequences",
}


def line(row: Row) -> str:
    """A row in Markdown."""
    counts = sorted(row.refused.items())
    refused = ", ".join(f"{count} that read {what}" for what, count in counts) or "none"
    cells = [ENGINES.get(row.engine, row.engine), row.equal, refused] if row.engine else ["none", "", ""]
    return f"| {row.architecture} | " + " | ".join([*cells, row.why.replace("|", "\\|")]) + " |\n"


def written() -> dict[str, str]:
    """Architecture -> its line in the page."""
    lines = TABLE.search(PAGE.read_text("utf-8"))[0].splitlines(keepends=True)[2:]
    return {one.split("|")[1].strip(): one for one in lines}


def write(rows: Iterable[Row]) -> None:
    """Puts these rows into the page's table, in place of those of the same architectures."""
    lines = written() | {row.architecture: line(row) for row in rows}
    table = HEAD + "".join(lines[name] for name in sorted(lines))
    PAGE.write_text(TABLE.sub(lambda _: table, PAGE.read_text("utf-8")), "utf-8")
