"""The lattice of heads that guess without seeing each other: a few tokens per depth, any of which may follow
any of the depth above (a sausage). Its best paths by the heads and an n-gram model (Kim et al. 2024, Towards
Fast Inference, section 4).

Knows scores and counts of runs; no model, no lane.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from decoders.datastore import END, Followers, Prefix, followers

BACK_OFF = 1.0  # what a shorter run counts for beside the counts of a longer one

Column = Sequence[tuple[int, float]]  # tokens of one depth with their log-probabilities, the best first
Language = Callable[[Prefix, int], float]  # (tokens before, token) -> log-probability


@dataclass(frozen=True)
class NGrams:
    """Counts of single tokens, and of runs of up to `order` tokens."""

    known: Followers
    single: Counter
    total: int
    order: int

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, tokens: Prefix, order: int) -> "NGrams":
        """Those of a store of texts, END between them."""
        single = Counter(token for token in tokens if token != END)
        return cls(followers(tokens, order - 1) if order > 1 else {}, single, single.total(), order)

    def logprob(self, before: Prefix, token: int, words: int) -> float:
        """log P(token | the last order - 1 tokens before it), of `words` tokens: each order leans on the next
        shorter one, the shortest on counts with 1 added.
        """
        p = (self.single[token] + 1) / (self.total + words)
        for n in range(1, self.order):
            if len(before) < n:
                break
            seen = self.known.get(tuple(before[-n:]))
            if seen is None:
                break
            p = (seen[token] + BACK_OFF * p) / (seen.total() + BACK_OFF)
        return math.log(p)


def best_paths(
    columns: Sequence[Column], count: int, weight: float, before: Prefix, language: Language, order: int
) -> list[tuple[float, Prefix]]:
    """The `count` paths of the largest sum of s_j(x_j) + weight log P(x_j | the order - 1 tokens before),
    exactly, the best first, equal ones by the ranks of their tokens. before: the text so far.

    Paths that end in the same order - 1 tokens go on alike, so of these the best `count` are enough.
    """
    keep = max(0, order - 1)
    start = tuple(before[len(before) - min(keep, len(before)) :])
    states = {start: [(0.0, (), ())]}  # the last tokens -> [(-score, ranks, tokens)]
    for column in columns:
        born: dict[Prefix, list] = {}
        for last, paths in states.items():
            for rank, (token, own) in enumerate(column):
                gain = own + (weight * language(last, token) if weight else 0.0)
                ends = (*last, token)[-keep:] if keep else ()
                born.setdefault(ends, []).extend(
                    (minus - gain, (*ranks, rank), (*tokens, token)) for minus, ranks, tokens in paths
                )
        states = {ends: sorted(paths)[:count] for ends, paths in born.items()}
    every = sorted(path for paths in states.values() for path in paths)
    return [(-minus, tokens) for minus, _, tokens in every[:count]]


def common(path: Sequence[int], text: Sequence[int]) -> int:
    """How many tokens a path and what was written begin with alike."""
    pairs = zip(path, text, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(path), len(text)))


def oracle(columns: Sequence[Sequence[int]], text: Sequence[int]) -> int:
    """How many tokens of what was written the best path of a lattice has: `columns` are its tokens."""
    return next(
        (at for at, (column, token) in enumerate(zip(columns, text, strict=False)) if token not in column),
        min(len(columns), len(text)),
    )


def repeats(path: Sequence[int]) -> float:
    """The share of neighbouring tokens that are equal; 0 for less than two."""
    pairs = list(zip(path, path[1:], strict=False))
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0
