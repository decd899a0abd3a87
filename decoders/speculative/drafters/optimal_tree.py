"""The best fixed shape of a drafted tree, by dynamic programming.

Sequoia (Chen et al. 2024), section 3. P_k is the probability that the k-th child of a node is the accepted
one, wherever the node stands. The value F of a tree is the sum over its nodes of the product of P along their
paths: the expected tokens per round, the target's own included. The best tree of n nodes consists of the best
trees of fewer nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

Skeleton = dict[tuple[int, ...], int]  # path of slots from the root, () -> how many children it has


@dataclass(frozen=True)
class Forms:
    """The best trees of n nodes on at most d levels, both counted from the root, with exactly b children of
    the root: `value[d, n, b]` is F (-inf where there is no such tree), and `earlier[d, n, b]` is how many of
    the nodes do not belong to the last child.
    """

    value: np.ndarray
    earlier: np.ndarray

    def expected(self, nodes: int, levels: int) -> float:
        """F of the best tree: tokens per round."""
        return float(self.value[levels, nodes].max())

    def skeleton(self, nodes: int, levels: int) -> Skeleton:
        """The form of the best tree."""
        form: Skeleton = {}

        def write(path: tuple[int, ...], nodes: int, levels: int) -> None:
            children = int(self.value[levels, nodes].argmax())
            if children:
                form[path] = children
            for b in range(children, 0, -1):
                rest = int(self.earlier[levels, nodes, b])
                write((*path, b - 1), nodes - rest, levels - 1)
                nodes = rest

        write((), nodes, levels)
        return form


@cache
def forms(rates: tuple[float, ...], max_nodes: int, depth: int) -> Forms:
    """The table of all trees of up to `max_nodes` nodes on up to `depth` levels, for rates P_1, P_2, ..."""
    value = np.full((depth + 1, max_nodes + 1, len(rates) + 1), -np.inf)
    earlier = np.zeros(value.shape, dtype=int)
    for levels in range(1, depth + 1):
        value[levels, 1, 0] = 1.0
        below = value[levels - 1].max(1)  # [n]: the best of n nodes, one level less
        for b, rate in enumerate(rates, 1):
            last = np.where(np.isfinite(below), rate * np.maximum(below, 0.0), -np.inf)
            for nodes in range(b + 1, max_nodes + 1):
                # 1 to n - 1 nodes for the root and its earlier children, the rest for the last one
                sums = value[levels, 1:nodes, b - 1] + last[nodes - 1 : 0 : -1]
                earlier[levels, nodes, b] = at = 1 + int(sums.argmax())
                value[levels, nodes, b] = sums[at - 1]
    return Forms(value, earlier)


def best_size(table: Forms, seconds: Mapping[int, float], draft: float) -> tuple[int, int, float]:
    """(nodes, levels, gain): the size whose rounds commit the most tokens in the time of a plain forward.

    seconds: how long a target forward of n nodes takes, by n; it must contain 1. draft: how long one draft
    forward takes, in the same unit; each level below the root costs one.
    """
    gain, nodes, levels = max(
        (seconds[1] * table.expected(n, d) / (seconds[n] + draft * (d - 1)), -n, -d)
        for n in seconds
        for d in range(1, len(table.value))
    )
    return -nodes, -levels, gain
