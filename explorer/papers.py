"""The 193 papers of assets/papers.csv and how far each is covered: computed from what strategies claim, never
typed by hand.
"""

import csv
from collections import Counter
from pathlib import Path

from decoders.registry import strategies

INDEX = Path(__file__).resolve().parent.parent / "assets" / "papers.csv"


def papers() -> list[dict]:
    """[{slug, title, family, status, how}]: status "works" with the strategies that realise it in `how`, else
    "missing".
    """
    realised: dict[str, list[str]] = {}
    for name, strategy in strategies().items():
        for slug in strategy.papers:
            realised.setdefault(slug, []).append(f"strategy {name}")
    with INDEX.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        row
        | {"status": "works" if row["slug"] in realised else "missing", "how": realised.get(row["slug"], [])}
        for row in rows
    ]


def summary(rows: list[dict]) -> str:
    """One line that counts the papers by status."""
    counts = Counter(row["status"] for row in rows)
    return (
        f"{len(rows)} papers: "
        + ", ".join(f"{n} {status}" for status, n in sorted(counts.items(), reverse=True))
        + "."
    )
