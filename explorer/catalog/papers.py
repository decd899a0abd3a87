"""The 193 papers of assets/papers.csv and how far each is covered, from the papers that strategies, lenses,
memories, experiments and small architectures declare. These declarations are kept in assets/claims.csv, since
collecting them imports torch. publish_claims.py writes the file, and a test checks that it is up to date.
assets/far_papers.csv has cards for papers that are not implemented here.
"""

import csv
from collections import Counter
from functools import cache
from typing import NamedTuple

from decoders.packages import assets

FAMILIES = {
    "search_and_sampling": "Search and sampling",
    "draft_trees_and_verification": "Draft trees and verification",
    "draft_heads": "Draft heads",
    "draft_free": "Drafting without a second model",
    "diffusion": "Diffusion",
    "constrained": "Constraints and structure",
    "lenses_memory_and_far": "Lenses, memory and further afield",
}
INDEX = assets() / "papers.csv"
CLAIMS = assets() / "claims.csv"
WITHOUT = {  # what a paper that works here lacks
    "instructretro": "Retro without instruction tuning",
    "progressive-gradient-flow-for-robust-n": "fading masks without patterns that get stricter in steps",
}
STATUSES = ("works", "miniature", "card")
CARD = ("does", "decoding", "nearest", "strategy", "miniature")


class Claim(NamedTuple):
    """An implementation, and the slugs of the papers that it declares."""

    kind: str  # strategy, lens, memory, model or experiment
    name: str
    text: str
    papers: tuple[str, ...]


def claims() -> list[Claim]:
    """Everything that may implement a paper, kind by kind."""
    # on demand: these import torch
    from decoders.lenses.registry import lenses
    from decoders.memory_options import memories
    from decoders.models.architectures import architectures
    from decoders.models.catalog import of_small_architectures
    from decoders.registry import strategies
    from explorer.experiments import experiments

    small = architectures()
    return [
        *(Claim("strategy", name, one.title, one.papers) for name, one in strategies().items()),
        *(Claim("lens", name, one.title, one.papers) for name, one in lenses().items()),
        *(Claim("memory", name, one.title, one.papers) for name, one in memories().items()),
        *(Claim("experiment", name, name, one.papers) for name, one in experiments().items()),
        *(Claim("model", name, name, small[kind][1]) for name, kind in of_small_architectures(small).items()),
    ]


def published_claims() -> list[Claim]:
    """The same, without asking the implementations."""
    return [Claim(**row | {"papers": tuple(row["papers"].split())}) for row in table("claims")]


def papers() -> list[dict]:
    """[{slug, title, family, authors, year, link, alias, status, how, lacks, card}]; authors and link are ""
    where nobody confirmed them.

    Status "works": the strategies, lenses, memories, experiments and models in `how` realise it, but for
    what `lacks` says, "" if nothing. "miniature"
    and "card": it does not run here; `card` says what it does, what that means for decoding and what comes
    nearest, and names a strategy or a miniature of its idea, "" for none.
    """
    realised: dict[str, list[str]] = {}
    for claim in published_claims():
        for slug in claim.papers:
            realised.setdefault(slug, []).append(f"{claim.kind} {claim.name}")
    cards = {row["slug"]: {key: row[key] for key in CARD} for row in table("far_papers")}
    return [
        row
        | {"how": realised.get(row["slug"], []), "card": cards.get(row["slug"])}
        | {"lacks": WITHOUT.get(row["slug"], ""), "status": status}
        for row in table("papers")
        for status in [status_of(row["slug"] in realised, cards.get(row["slug"], {}))]
    ]


def status_of(realised: bool, card: dict) -> str:
    """A paper's status: an implementation takes precedence over its card."""
    if realised:
        return "works"
    return "miniature" if card["miniature"] else "card"


@cache
def table(name: str) -> list[dict[str, str]]:
    """The rows of assets/NAME.csv."""
    with INDEX.with_name(f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict]) -> str:
    """A line with the number of papers by status."""
    counts = Counter(row["status"] for row in rows)
    return (
        f"{len(rows)} papers: "
        + ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
        + "."
    )
