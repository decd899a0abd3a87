"""A trigram table as a draft, searched by Monte Carlo: which paths after two given tokens are worth
verifying.

The simulation is that of search/tree_search/mcts.py. After ADED (Liu et al. 2024), with the reward that the
paper describes: one plus the sum of the weights along the path.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from decoders.chooser import Chooser
from decoders.datastore import Prefix, followers
from decoders.search.tree_search.mcts import Edge, State, TreeSearch

KEPT = 12  # heaviest successors kept per pair of tokens
STEP, CAP, RECENT = 0.04, 3.0, 16  # what a trigram of the last RECENT tokens gains, and its largest weight
C1, C2 = 32.0, 8.0
Table = dict[tuple[int, int], dict[int, float]]  # two tokens -> weights of what may follow


@lru_cache(maxsize=8)
def trigram_table(tokens: Prefix) -> Table:
    """The relative frequencies of the tokens that follow each pair of tokens in a store: the most frequent
    few, smaller tokens first on ties. The result is cached: copy it before changing it.
    """
    table = {}
    for run, after in followers(tokens, 2).items():
        if len(run) == 2:
            best = sorted(after, key=lambda token: (-after[token], token))[:KEPT]
            table[run] = {token: after[token] / after.total() for token in best}
    return table


def nudge(table: Table, recent: Sequence[int]) -> int:
    """Raises every trigram of `recent` by STEP, up to CAP; returns how many there were."""
    triples = list(zip(recent, recent[1:], recent[2:], strict=False))
    for a, b, c in triples:
        weights = table.setdefault((a, b), {})
        weights[c] = max(weights.get(c, 0.0), min(CAP, weights.get(c, 0.0) + STEP))
    return len(triples)


def puct(edge: Edge, visits: int) -> float:
    """The PUCT value of an edge of a state with this many visits."""
    curious = C1 + math.log((visits + C2 + 1) / C2)
    return edge.value + curious * edge.prior * math.sqrt(visits) / (1 + edge.visits)


@dataclass
class TrigramSearch(TreeSearch):
    """A search `depth` tokens ahead. The text of a state is the two given tokens and its path."""

    table: Table
    depth: int
    chooser: Chooser
    tag: tuple
    turn: int = 0

    def open(self, node: tuple[int, ...]) -> State:
        """A state with an edge for each successor in the table."""
        after = self.table.get(node[-2:], {}) if len(node) - 2 < self.depth else {}
        return State(node, [Edge((*node, token), weight) for token, weight in after.items()])

    def choose(self, state: State) -> Edge:
        """An untried edge first, then the one with the highest PUCT value; on a tie the first."""
        for edge in state.edges:
            if not edge.visits:
                return edge
        return max(state.edges, key=lambda edge: puct(edge, state.visits))

    def evaluate(self, state: State) -> float:
        """One, plus the weights along the path and of a continuation that is drawn."""
        path = state.node
        paid = 1.0 + sum(self.table[a, b][c] for a, b, c in zip(path, path[1:], path[2:], strict=False))
        left = self.depth - (len(path) - 2)
        return paid + roll_out(self.table, path[-2:], left, self.chooser, (*self.tag, self.turn))


def search(
    table: Table, last: tuple[int, int], simulations: int, depth: int, chooser: Chooser, tag: tuple
) -> State:
    """The root of the searched tree, up to `depth` tokens after the two of `last`."""
    trigrams = TrigramSearch(table, depth, chooser, tag)
    root = trigrams.open(last)
    root.visits = 0  # no rollout starts from the root itself
    for trigrams.turn in range(simulations):
        trigrams.simulate(root)
    return root


def roll_out(table: Table, pair: tuple[int, int], max_depth: int, chooser: Chooser, tag: tuple) -> float:
    """The sum of the weights of up to `max_depth` successors, each drawn in proportion to its weight."""
    gained = 0.0
    for level in range(max_depth):
        after = table.get(pair)
        if not after:
            break
        weights = torch.tensor(list(after.values()), dtype=torch.float64)
        token = list(after)[chooser.categorical(weights, (*tag, level)).value]
        gained, pair = gained + after[token], (pair[1], token)
    return gained


def most_visited_paths(root: State) -> list[tuple[tuple[int, ...], int]]:
    """All visited paths and their visits, most visited first; ties go to the shorter, then to the smaller."""
    paths, open_states = [], [root]
    while open_states:
        for edge in open_states.pop().edges:
            if edge.visits:
                paths.append((edge.node[2:], edge.visits))
                open_states.append(edge.below)
    return sorted(paths, key=lambda item: (-item[1], len(item[0]), item[0]))
