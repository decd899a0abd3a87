"""The cost table of a run in CSV: plain numbers, for spreadsheets and notebooks."""

import csv
import io

from decoders.trace.trace import Trace
from visualizers.analysis.cost_summary import COLUMNS, table_row

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet evaluates a text that begins with these
HEADER = ["lane", "strategy", "title", "parameters", "seed", "badge"]


def cost_table(traces: list[Trace]) -> str:
    """One row per lane: what ran, all columns of the comparison's table, why it ended. Cells without a value
    are empty.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([*HEADER, *(column["name"] for column in COLUMNS), "ended"])
    for number, trace in enumerate(traces, 1):
        parameters = " ".join(f"{name}={value}" for name, value in trace.parameters.items())
        cells = table_row(trace.costs, trace.ended)
        writer.writerow(
            [
                number,
                text(trace.strategy),
                text(trace.title),
                text(parameters),
                trace.seed,
                text(trace.promise),
                *(plain(cell["value"]) for cell in cells),
                text(trace.ended or ""),
            ]
        )
    return file.getvalue()


def plain(value: object) -> object:
    """A cell's value: lists as numbers with blanks between, None as nothing."""
    return " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else value


def text(words: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return "'" + words if words.startswith(FORMULA) else words
