"""Trees for drafters whose slots are attached to the drafted nodes themselves: one tree for each number of
slots on the node that was accepted last (Chen et al. 2024, PPD: Hardware-Aware Parallel Prompt Decoding).

That number, d, is the state: the number of distributions to draft from. A tree of state d holds paths of
ranks at most d deep, and says how many slots each of its nodes carries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from decoders.speculative.drafters.rank_trees import Accuracy, Path, topology_from_rank_accuracy


@dataclass(frozen=True)
class StateTree:
    """The tree of one state: the number of slots on each of its paths of ranks, parents first. The root,
    which is not among them, always carries all slots.
    """

    slots: Mapping[Path, int]

    @property
    def rows(self) -> int:
        """Nodes and their slots, without those of the root."""
        return len(self.slots) + sum(self.slots.values())


def path_values(accuracy: Accuracy, paths: Sequence[Path]) -> dict[Path, float]:
    """How likely each path is to be accepted, if ranks at different depths are right independently."""
    return {path: float(np.prod([accuracy[i][rank] for i, rank in enumerate(path)])) for path in paths}


def last_accepted(values: Mapping[Path, float]) -> dict[Path, float]:
    """P(last accepted = path), () being none: its value minus those of its kept children."""
    ends = {(): 1.0, **values}
    for path, value in values.items():
        ends[path[:-1]] -= value
    return ends


def transitions(accuracy: Accuracy, trees: Mapping[int, StateTree], idle: bool = False) -> np.ndarray:
    """T[d, c] = P(state c follows state d), [n + 1, n + 1]: a round that accepts nothing leads to the full
    state n. With `idle` it leads to state 0, which drafts nothing and from which n follows, as in the
    published builder.
    """
    n = max(trees)
    matrix = np.zeros((n + 1, n + 1))
    matrix[0, n] = 1.0
    for state, tree in trees.items():
        for path, share in last_accepted(path_values(accuracy, list(tree.slots))).items():
            matrix[state, tree.slots[path] if path else 0 if idle else n] += share
    return matrix


def expected_tokens(
    accuracy: Accuracy, trees: Mapping[int, StateTree], idle: bool = False
) -> tuple[float, np.ndarray]:
    """(tokens per forward in the long run, stationary distribution of the states 0 to n): 1 plus the mean
    over the states of the sum of their paths' values.
    """
    matrix = transitions(accuracy, trees, idle)
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    stationary = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]
    gains = {state: sum(path_values(accuracy, list(tree.slots)).values()) for state, tree in trees.items()}
    return 1.0 + sum(stationary[state] * gain for state, gain in gains.items()), stationary


def with_slots(
    accuracy: Accuracy, paths: Sequence[Path], n: int, room: int, gains: Sequence[float]
) -> StateTree:
    """n slots on each path; while nodes and slots exceed `room`, the slot with the smallest loss is removed:
    P(last = path) (f_c - f_(c - 1)), f_d = `gains[d]` being what state d drafts. Each path keeps at least
    one.
    """
    slots, ends = dict.fromkeys(paths, n), last_accepted(path_values(accuracy, paths))

    def loss(path: Path) -> float:
        return ends[path] * (gains[slots[path]] - gains[slots[path] - 1])

    while len(slots) + sum(slots.values()) > room:
        spare = [path for path, count in slots.items() if count > 1]
        if not spare:
            break
        slots[min(spare, key=loss)] -= 1
    return StateTree(slots)


@cache
def planned(accuracy: tuple[tuple[float, ...], ...], n: int, rows: int) -> dict[int, StateTree]:
    """The tree of each state 1 to n in forwards of at most `rows` rows: the root, its n slots, nodes and
    theirs.

    The number of nodes of each state's tree is searched one state at a time, for the most tokens per forward.
    """
    room = max(0, rows - 1 - n)
    counts = dict.fromkeys(range(1, n + 1), max(0, room // (n + 1)))

    def trees() -> dict[int, StateTree]:
        paths = {d: topology_from_rank_accuracy(accuracy[:d], count) for d, count in counts.items()}
        gains = [0.0, *(sum(path_values(accuracy, paths[d]).values()) for d in range(1, n + 1))]
        return {d: with_slots(accuracy, paths[d], n, room, gains) for d in counts}

    for _ in range(2):
        for d in counts:
            tokens = {}
            for count in range(room // 2 + 1):  # each node with one slot at least
                counts[d] = count
                tokens[count] = expected_tokens(accuracy, trees())[0]
            counts[d] = max(tokens, key=tokens.__getitem__)
    return trees()


def best_rows(
    accuracy: tuple[tuple[float, ...], ...], n: int, seconds: Mapping[int, float]
) -> tuple[int, float]:
    """(rows of a forward, tokens per time of a forward of one row): the best size, given how long forwards of
    so many rows take; `seconds` must contain 1.
    """
    pays = {
        rows: expected_tokens(accuracy, planned(accuracy, n, rows))[0] * seconds[1] / took
        for rows, took in seconds.items()
        if rows > 1
    }
    best = max(pays, key=lambda rows: (pays[rows], -rows))
    return best, pays[best]
