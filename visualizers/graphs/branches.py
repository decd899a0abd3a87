"""The places of a family tree on a grid: columns are years, families bands of rows, and the methods of a
branch stand near each other.

Takes the graph of visualizers.analysis.family_tree. Draws nothing.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, product
from math import ceil

import networkx as nx

from visualizers.analysis.family_tree import in_order

FEW, FULL = 4, 12  # methods that fill a column of years, and from which years get a second one, a third ...
UNDATED = "undated"  # the column of methods without a year


@dataclass(frozen=True)
class Years:
    """Consecutive years that share columns: `wide` of them, from column `first` on."""

    years: tuple[str, ...]
    first: int
    wide: int

    @property
    def label(self) -> str:
        """The first and the last of the years."""
        first, last = self.years[0], self.years[-1]
        return UNDATED if not first else first if first == last else f"{first} – {last}"


@dataclass(frozen=True)
class Band:
    """The rows of a family, `tall` of them from `row` on."""

    family: str
    row: int
    tall: int


@dataclass(frozen=True)
class Grid:
    """`places`: method -> (column, row). All else from left to right and from the top down."""

    years: list[Years]
    bands: list[Band]
    places: dict[str, tuple[int, int]]

    @property
    def at(self) -> dict[tuple[int, int], str]:
        """(column, row) -> method."""
        return {place: name for name, place in self.places.items()}

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of columns and rows."""
        return sum(one.wide for one in self.years), sum(one.tall for one in self.bands)


def grid(graph: nx.DiGraph, families: Iterable[str]) -> Grid:
    """The grid of a family tree, one band of rows for each of `families`."""
    years = year_columns(graph)
    of = {year: one for one in years for year in one.years}
    bands, places, top = [], {}, 0
    for family in families:
        own: dict[str, tuple[int, int]] = {}
        for members in by_branch(graph, family).values():
            wanted = {member: of[graph.nodes[member]["year"]] for member in members}
            own |= next(filter(None, (block(wanted, row, set(own.values())) for row in count())))
        tall = 1 + max((row for _, row in own.values()), default=-1)
        bands.append(Band(family, top, tall))
        places |= {name: (column, top + row) for name, (column, row) in own.items()}
        top += tall
    return Grid(years, bands, places)


def year_columns(graph: nx.DiGraph) -> list[Years]:
    """Years with few methods share a column with the next ones; a year with many has several."""
    many = Counter(year for _, year in graph.nodes(data="year"))
    groups: list[list[str]] = []
    for year in sorted(many):
        if groups and groups[-1] != [""] and sum(many[one] for one in groups[-1]) < FEW:
            groups[-1].append(year)
        else:
            groups.append([year])
    made, first = [], 0
    for group in groups:
        wide = max(1, round(sum(many[year] for year in group) / FULL))
        made.append(Years(tuple(group), first, wide))
        first += wide
    return made


def by_branch(graph: nx.DiGraph, family: str) -> dict[str, list[str]]:
    """The methods of a family by their branch; parents before their children, older ones first."""
    found: dict[str, list[str]] = {}
    for name in in_order(graph, family):
        found.setdefault(graph.nodes[name]["branch"], []).append(name)
    return found


def block(
    wanted: dict[str, Years], top: int, taken: set[tuple[int, int]]
) -> dict[str, tuple[int, int]] | None:
    """The cells of a branch in as few rows as it needs alone, from row `top` on, among those not yet taken:
    its methods of a year side by side, then below each other. None if there is no room for it.
    """
    rows = max(ceil(many / years.wide) for years, many in Counter(wanted.values()).items())
    free = {
        years: iter(
            [
                cell
                for cell in product(range(top, top + rows), range(years.first, years.first + years.wide))
                if cell[::-1] not in taken
            ]
        )
        for years in wanted.values()
    }
    placed = {name: next(free[years], None) for name, years in wanted.items()}
    if None in placed.values():
        return None
    return {name: (column, row) for name, (row, column) in placed.items()}
