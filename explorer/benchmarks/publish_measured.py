"""What `bench --store` measured: docs/measured.json keeps it, and the tables of the documentation are written
from it. As a program it writes the tables again, without measuring.

A table of a page stands between `<!-- measured: PART -->` and `<!-- end of measured -->`.
"""

import argparse
import json
import os
import platform
import re
from datetime import date
from importlib.metadata import version

from decoders import files, packages
from decoders.models.catalog import DRAFT, TARGET
from decoders.refusal import Refusal

DOCS = packages.ROOT / "docs"
STORE = DOCS / "measured.json"
TABLE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)
UNITS = {"x": " ×", "×": " ×", "": ""}
HEAD = "| what | measured | goal |\n|---|---|---|\n"


def stored() -> dict[str, dict]:
    """Name of a part -> its command, machine, date, seconds, and rows."""
    return json.loads(STORE.read_text("utf-8"))


def check(options: argparse.Namespace) -> None:
    """Raises Refusal with one sentence where figures of this run have no place in the documentation."""
    if not STORE.exists():
        raise Refusal("--store writes docs/measured.json of a source checkout, and there is none here.")
    if options.family == "heads":
        raise Refusal(
            "python -m explorer.benchmarks.publish_head_gains measures the family heads and stores it."
        )
    if (options.model, options.draft) != (TARGET, DRAFT):
        raise Refusal(f"the documentation has the figures of {TARGET} and {DRAFT}; leave out --store.")
    if options.ray is not None:
        raise Refusal("--store says on which machine a figure was measured; leave out --ray.")


def keep(part: str, asked: str, seconds: float, rows: list[dict]) -> None:
    """Stores what a part measured in place of what it measured before, and writes the tables. What measured
    nothing, for want of a browser, replaces nothing. asked: the options of `bench` that measure the part.
    """
    if not any("value" in row for row in rows):
        return
    measured = {
        "command": f"python -m explorer bench {asked}",
        "machine": machine(),
        "date": date.today().isoformat(),
        "seconds": round(seconds),
        "rows": [{name: value for name, value in row.items() if name != "part"} for row in rows],
    }
    files.write(STORE, json.dumps(stored() | {part: measured}, indent=1, sort_keys=True) + "\n")
    publish()


def machine() -> str:
    """What a figure depends on besides the code."""
    import torch

    cores = f"{os.cpu_count()} cores ({platform.machine()}), {torch.get_num_threads()} used by torch"
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    return f"{cores}; Python {platform.python_version()}, {packages}"


def publish() -> None:
    """Writes the tables of all pages."""
    for page in DOCS.glob("*.md"):
        text = page.read_text("utf-8")
        if (made := filled(text)) != text:
            files.write(page, made)


def filled(text: str) -> str:
    """The text of a page with the tables of what is stored."""
    measured = stored()
    return TABLE.sub(lambda found: found[1] + table(measured[found[2]]) + found[3], text)


def table(measured: dict) -> str:
    """A part as Markdown: its figures, then how they were measured. Rows without a figure are left out."""
    lines = [line(row) for row in measured["rows"] if "value" in row]
    origin = f"`{measured['command']}`, {measured['date']}: {measured['machine']}"
    return f"{HEAD}{''.join(lines)}\n{origin}\n"


def line(row: dict) -> str:
    """A figure as a row of a table."""
    missed = ", missed" if row["met"] is False else ""
    goal = "" if row["goal"] == "none" else row["goal"].strip().replace(" x", " ×") + missed
    return f"| {row['name']} | {number(row['value'])}{UNITS.get(row['unit'], ' ' + row['unit'])} | {goal} |\n"


def number(value: float) -> str:
    """Three figures of a number, and all of a count."""
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    publish()
