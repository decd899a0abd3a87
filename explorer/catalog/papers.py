"""The 193 papers of assets/papers.csv and how far each is covered: computed from what strategies and
experiments claim, never typed by hand.
"""

import csv
from collections import Counter
from pathlib import Path

from decoders.registry import strategies
from explorer.experiments import experiments

FAMILIES = {
    "search_and_sampling": "Search and sampling",
    "draft_trees_and_verification": "Draft trees and verification",
    "draft_heads": "Draft heads",
    "draft_free": "Drafting without a second model",
    "diffusion": "Diffusion",
    "constrained": "Constraints and structure",
    "lenses_memory_and_far": "Lenses, memory and further afield",
}
INDEX = Path(__file__).resolve().parents[2] / "assets" / "papers.csv"


def papers() -> list[dict]:
    """[{slug, title, family, authors, year, link, alias, status, how}]: status "works" with the strategies
    and experiments that realise it in `how`, else "missing"; authors and link are "" where nobody confirmed
    them.
    """
    realised: dict[str, list[str]] = {}
    for name, strategy in strategies().items():
        for slug in strategy.papers:
            realised.setdefault(slug, []).append(f"strategy {name}")
    for name, experiment in experiments().items():
        for slug in experiment.papers:
            realised.setdefault(slug, []).append(f"experiment {name}")
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
