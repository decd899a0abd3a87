"""Measures what the trained drafters gain, when it is run as a program: writes assets/head_gains.csv and the
table in docs/heads.md. Methods quotes it on their cards.
"""

import argparse
import csv
from dataclasses import astuple, fields, replace
from pathlib import Path
from statistics import median

from decoders.models.catalog import DRAFT, TARGET
from explorer.benchmarks.heads_family import Gains, heads
from explorer.catalog import origins, papers

RUNS = 3
DOCS = Path(__file__).parents[2] / "docs" / "heads.md"
BEGIN, END = "<!-- gains -->\n", "<!-- end of gains -->\n"
HEAD = (
    "| drafter | against greedy | tokens per target forward on stories | overall | draft step, ms | "
    "time in draft steps | other drafting |\n|---|---|---|---|---|---|---|\n"
)


def measured() -> list[Gains]:
    """All drafters, fastest first: medians of several runs in the process's own computing time, and in one
    thread: where another process is busy, two wait for each other, and that counts as computing.
    """
    import torch

    torch.set_num_threads(1)
    options = argparse.Namespace(model=TARGET, draft=DRAFT, busy=True)
    found: dict[str, list[Gains]] = {}
    for _ in range(RUNS):
        for row in heads(options):
            if "gains" in row:
                found.setdefault(row["name"], []).append(Gains(**row["gains"]))
    return sorted(map(middle, found.values()), key=lambda one: -one.against_greedy)


def middle(gains: list[Gains]) -> Gains:
    """The median of each figure of one drafter."""
    first, *_ = gains
    figures = [name for name, value in vars(first).items() if isinstance(value, float)]
    return replace(first, **{name: median(getattr(one, name) for one in gains) for name in figures})


def stored() -> list[Gains]:
    """The drafters in the file."""
    names = [field.name for field in fields(Gains)][1:]
    return [
        Gains(row["drafter"], *(float(row[name]) if row[name] else None for name in names))
        for row in papers.table(origins.GAINS.stem)
    ]


def table(gains: list[Gains]) -> str:
    """The table as Markdown."""
    return HEAD + "".join(map(line, gains))


def line(one: Gains) -> str:
    """A row of the table."""
    name = one.drafter if " " in one.drafter else f"`{one.drafter}`"
    step = "—" if one.draft_step is None else f"{one.draft_step:.1f}"
    return (
        f"| {name} | {one.against_greedy:.2f} × | {one.on_stories:.2f} | {one.overall:.2f} | {step} | "
        f"{one.in_steps:.0%} | {one.other:.0%} |\n".replace("%", " %")
    )


def publish(gains: list[Gains]) -> None:
    """Writes both files."""
    with origins.GAINS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Gains))
        for one in gains:
            writer.writerow(rounded(value) for value in astuple(one))
    before, rest = DOCS.read_text("utf-8").split(BEGIN)
    DOCS.write_text(f"{before}{BEGIN}{table(stored())}{END}{rest.split(END)[1]}", "utf-8")


def rounded(value: str | float | None) -> str | float:
    """A cell of the file, empty where there is no number."""
    return "" if value is None else round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    publish(measured())
