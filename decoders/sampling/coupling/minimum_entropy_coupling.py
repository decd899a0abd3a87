"""Minimum entropy coupling with a bottleneck. Entropies are in bits.

Ebrahimi, Chen and Khisti (2024), Minimum Entropy Coupling with Bottleneck. A source X with distribution p is
encoded as T by an encoder, a joint distribution [X, T]; I(X; T) should be large while H(T) is at most a
budget R. T is then coupled with a fixed distribution q: their joint distribution has marginals p_T and q and
low entropy, so that a draw from q reveals much about T.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from decoders.refusal import Refusal

Groups = list[tuple[int, ...]]  # a deterministic encoder: the symbols of X that each symbol of T stands for
MAX_FOR_EXACT = 8  # symbols of X: they have 4,140 partitions
ROUNDING = 1e-12


def entropy(probs: torch.Tensor) -> float:
    """The entropy in bits of a distribution or joint distribution of any shape."""
    return float(torch.special.entr(probs.double()).sum()) / math.log(2)


def information(joint: torch.Tensor) -> float:
    """I(X; Y) in bits of a joint distribution [X, Y]."""
    return max(0.0, entropy(joint.sum(1)) + entropy(joint.sum(0)) - entropy(joint))


# ---- the encoder -------------------------------------------------------------------------------------------


def encoder(p: torch.Tensor, bits: float, search: str) -> torch.Tensor:
    """The joint distribution [X, T] of an encoder of X, with H(T) of at most `bits`; `search` is one of
    ENCODERS.
    """
    return ENCODERS[search](p, bits)


def joint_of(p: torch.Tensor, groups: Groups) -> torch.Tensor:
    """The joint distribution [X, T] of a deterministic encoder."""
    joint = torch.zeros(len(p), len(groups), dtype=torch.float64)
    for column, group in enumerate(groups):
        joint[list(group), column] = p[list(group)]
    return joint


def merge_groups(p: torch.Tensor, groups: Groups, largest: bool) -> Groups:
    """The groups with the two largest or the two smallest of them merged; ties to earlier ones."""
    ranked = sorted(enumerate(masses(p, groups)), key=lambda m: -m[1] if largest else m[1])
    a, b = sorted(at for at, _ in ranked[:2])
    both = tuple(sorted(groups[a] + groups[b]))
    return [both if at == a else group for at, group in enumerate(groups) if at != b]


def greedy(p: torch.Tensor, bits: float) -> tuple[Groups, Groups]:
    """(the best map within the budget that a greedy search finds, the last one above the budget).

    Starts from the identity. Merging the two smallest groups gives S, merging the two largest gives B. If S
    is within the budget the search ends; else it continues from B if that is still above the budget, and from
    S if not.
    """
    now: Groups = [(x,) for x in range(len(p))]
    if size(p, now) <= bits + ROUNDING:
        return now, now
    best: Groups | None = None
    while True:
        small, large = merge_groups(p, now, largest=False), merge_groups(p, now, largest=True)
        for candidate in (small, large):
            within = size(p, candidate) <= bits + ROUNDING
            best = candidate if within and (best is None or size(p, candidate) > size(p, best)) else best
        if size(p, small) <= bits + ROUNDING:
            return best, now
        now = large if size(p, large) > bits + ROUNDING else small


def masses(p: torch.Tensor, groups: Groups) -> list[float]:
    """The probability of each group."""
    probs = p.tolist()
    return [sum(probs[x] for x in group) for group in groups]


def size(p: torch.Tensor, groups: Groups) -> float:
    """H(T) in bits, which for a map is I(X; T) as well."""
    return -sum(mass * math.log2(mass) for mass in masses(p, groups) if mass > 0.0)


def partitions(count: int) -> Iterator[Groups]:
    """All partitions of 0 … count - 1 into groups."""
    if not count:
        yield []
        return
    for groups in partitions(count - 1):
        yield [*groups, (count - 1,)]
        for at, group in enumerate(groups):
            yield [*groups[:at], (*group, count - 1), *groups[at + 1 :]]


def exact(p: torch.Tensor, bits: float) -> Groups:
    """The best of all maps within the budget. Raises ValueError for more than MAX_FOR_EXACT symbols."""
    if len(p) > MAX_FOR_EXACT:
        raise Refusal(
            f"All maps are tried for up to {MAX_FOR_EXACT} symbols, not {len(p)}; choose another encoder."
        )
    within = ((size(p, groups), groups) for groups in partitions(len(p)))
    return max((f for f in within if f[0] <= bits + ROUNDING), key=lambda sized: sized[0])[1]


def between(p: torch.Tensor, bits: float) -> torch.Tensor:
    """A randomized encoder that uses the whole budget: the map below the budget with some mass split off, or
    the map above it with some mass merged, whichever has the larger I(X; T).
    """
    below, above = greedy(p, bits)
    joints = [raised(joint_of(p, below), bits)]
    if above != below:
        joints.append(lowered(joint_of(p, above), bits))
    return max(joints, key=information)


def raised(joint: torch.Tensor, bits: float) -> torch.Tensor:
    """Moves mass from the cell with the smallest share of its column to a new column until H(T) is `bits`."""
    while entropy(joint.sum(0)) < bits - ROUNDING:
        share = torch.where(joint > 0, joint / joint.sum(0), 2.0)
        row, column = divmod(int(share.argmin()), joint.shape[1])
        if share[row, column] > 1 - ROUNDING:
            break  # every symbol has a column of its own
        wider = torch.cat([joint, joint.new_zeros(len(joint), 1)], dim=1)
        joint = moved(wider, row, column, wider.shape[1] - 1, bits, rises=True)
    return joint


def lowered(joint: torch.Tensor, bits: float) -> torch.Tensor:
    """Moves mass from the smallest cell of the smallest column to the largest column until H(T) is `bits`."""
    while entropy(joint.sum(0)) > bits + ROUNDING:
        sums = joint.sum(0)
        column, into = int(sums.argmin()), int(sums.argmax())
        row = int(torch.where(joint[:, column] > 0, joint[:, column], 2.0).argmin())
        joint = moved(joint, row, column, into, bits, rises=False)
        joint = joint[:, joint.sum(0) > 0]
    return joint


def moved(joint: torch.Tensor, row: int, column: int, into: int, bits: float, rises: bool) -> torch.Tensor:
    """Moves mass from a cell to another column of its row until H(T) rises or falls to `bits`."""

    def at(share: float) -> torch.Tensor:
        made, mass = joint.clone(), joint[row, column] * share
        made[row, column] = joint[row, column] - mass
        made[row, into] += mass
        return made

    if (entropy(at(1.0).sum(0)) <= bits + ROUNDING) == rises:
        return at(1.0)
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (entropy(at(middle).sum(0)) <= bits) == rises else (low, middle)
    return at(low if rises else high)


ENCODERS = {
    "greedy": lambda p, bits: joint_of(p, greedy(p, bits)[0]),
    "exact": lambda p, bits: joint_of(p, exact(p, bits)),
    "between": between,
}


# ---- the coupling ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coupling:
    """A sparse joint distribution of T and Y: the mass of each non-empty cell, by column. `rows`, `columns`:
    numbers of symbols of T and Y.
    """

    cells: dict[int, dict[int, float]]  # y -> t -> mass
    rows: int
    columns: int

    def row(self, t: int) -> torch.Tensor:
        """The masses [Y] of a row."""
        own = {y: column[t] for y, column in self.cells.items() if t in column}
        row = torch.zeros(self.columns, dtype=torch.float64)
        row[list(own)] = torch.tensor(list(own.values()), dtype=torch.float64)
        return row

    def column(self, y: int) -> list[float]:
        """The masses [T] of a column."""
        return [self.cells.get(y, {}).get(t, 0.0) for t in range(self.rows)]

    def joint(self) -> torch.Tensor:
        """The dense joint distribution [T, Y]."""
        joint = torch.zeros(self.rows, self.columns, dtype=torch.float64)
        places = [(t, y) for y, column in self.cells.items() for t in column]
        masses = [mass for column in self.cells.values() for mass in column.values()]
        joint[tuple(torch.tensor(places).T)] = torch.tensor(masses, dtype=torch.float64)
        return joint


def coupled(p: Sequence[float], q: Sequence[float]) -> Coupling:
    """Greedy coupling of two distributions: repeatedly pairs the largest remaining mass of p with that of q,
    and puts the smaller of the two into their cell. At most len(p) + len(q) - 1 cells; ties to the smaller
    index. When one side has a single symbol left, it takes all that the other side has, so that no mass is
    lost to rounding.
    """
    cells: dict[int, dict[int, float]] = {}
    left = [(-mass, i) for i, mass in enumerate(p) if mass > 0.0]
    right = [(-mass, j) for j, mass in enumerate(q) if mass > 0.0]
    heapq.heapify(left)
    heapq.heapify(right)
    while len(left) > 1 and len(right) > 1:
        (a, i), (b, j) = heapq.heappop(left), heapq.heappop(right)
        more = max(a, b)  # both are negative: the smaller mass
        cells.setdefault(j, {})[i] = cells.get(j, {}).get(i, 0.0) - more
        if a < b:
            heapq.heappush(left, (a - b, i))
        if b < a:
            heapq.heappush(right, (b - a, j))
    rest = left if len(right) == 1 else right
    for mass, at in rest:
        i, j = (at, right[0][1]) if rest is left else (left[0][1], at)
        cells.setdefault(j, {})[i] = cells.get(j, {}).get(i, 0.0) - mass
    return Coupling(cells, len(p), len(q))
