"""A trigram table as a draft, searched by Monte Carlo: which paths from two given tokens are worth a check.

Knows tokens, weights and chance, nothing of lanes or models. After ADED (Liu et al. 2024), with the reward
that the paper means: one plus the sum of the weights along the path.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from decoders.chooser import Chooser

KEPT = 12  # heaviest successors of two tokens
STEP, CAP, RECENT = 0.04, 3.0, 16  # what a trigram of the last RECENT tokens gains, and its largest weight
C1, C2 = 32.0, 8.0
Table = dict[tuple[int, int], dict[int, float]]  # two tokens -> weights of what may follow


def counted(texts: list[list[int]]) -> Table:
    """Shares of what follows two tokens in `texts`, of the heaviest few, smaller tokens first on ties."""
    counts: dict[tuple[int, int], Counter] = defaultdict(Counter)
    for text in texts:
        for a, b, c in zip(text, text[1:], text[2:], strict=False):
            counts[a, b][c] += 1
    table = {}
    for key, after in counts.items():
        best = sorted(after, key=lambda token: (-after[token], token))[:KEPT]
        table[key] = {token: after[token] / after.total() for token in best}
    return table


def nudge(table: Table, recent: Sequence[int]) -> int:
    """Raises every trigram of `recent` by STEP, up to CAP; returns how many there were."""
    triples = list(zip(recent, recent[1:], recent[2:], strict=False))
    for a, b, c in triples:
        weights = table.setdefault((a, b), {})
        weights[c] = max(weights.get(c, 0.0), min(CAP, weights.get(c, 0.0) + STEP))
    return len(triples)


@dataclass
class Place:
    """A place of the search: its token, the weight it was reached with, visits and sum of rewards."""

    token: int
    weight: float
    visits: int = 0
    total: float = 0.0
    below: list["Place"] = field(default_factory=list)


def puct(place: Place, visits: int) -> float:
    """How much a place with a parent of so many visits deserves the next one."""
    if not place.visits:
        return math.inf
    curious = C1 + math.log((visits + C2 + 1) / C2)
    return place.total / place.visits + curious * place.weight * math.sqrt(visits) / (1 + place.visits)


def search(
    table: Table, last: tuple[int, int], simulations: int, depth: int, chooser: Chooser, tag: tuple
) -> Place:
    """The searched tree, up to `depth` tokens below the second of `last`."""
    root = Place(last[1], 0.0)
    if last not in table:
        return root
    for turn in range(simulations):
        path = [root]
        while path[-1].below:
            here = path[-1]
            path.append(max(here.below, key=lambda place, n=here.visits: puct(place, n)))
        if len(path) <= depth and (path[-1].visits or path[-1] is root):
            after = table.get(newest(path, last), {})
            path[-1].below = [Place(token, weight) for token, weight in after.items()]
            path += path[-1].below[:1]
        reward = 1.0 + sum(place.weight for place in path[1:])
        reward += roll_out(table, newest(path, last), depth + 1 - len(path), chooser, (*tag, turn))
        for place in path:
            place.visits, place.total = place.visits + 1, place.total + reward
    return root


def newest(path: list[Place], last: tuple[int, int]) -> tuple[int, int]:
    """The two tokens at the end of a path; the first of `last` stands before its root."""
    return (path[-2].token if len(path) > 1 else last[0], path[-1].token)


def roll_out(table: Table, pair: tuple[int, int], most: int, chooser: Chooser, tag: tuple) -> float:
    """The sum of the weights of up to `most` successors, each drawn in proportion to its weight."""
    gained = 0.0
    for level in range(most):
        after = table.get(pair)
        if not after:
            break
        weights = torch.tensor(list(after.values()), dtype=torch.float64)
        token = list(after)[chooser.categorical(weights, (*tag, level)).value]
        gained, pair = gained + after[token], (pair[1], token)
    return gained


def ranked(root: Place) -> list[tuple[tuple[int, ...], int]]:
    """All visited paths and their visits, most visited first; of equals the shorter, then the smaller."""
    found, open_places = [], [((), root)]
    while open_places:
        path, here = open_places.pop()
        for place in here.below:
            if place.visits:
                found.append(((*path, place.token), place.visits))
                open_places.append(((*path, place.token), place))
    return sorted(found, key=lambda item: (-item[1], len(item[0]), item[0]))
