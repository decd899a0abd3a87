"""The lattice of heads that guess without seeing each other: a few tokens per depth, any of which may follow
any of the depth above (a sausage). Its best paths by the heads and an n-gram model (Kim et al. 2024, Towards
Fast Inference, section 4).

Knows scores and counts of runs; no model, no lane.
"""

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from decoders.datastore import END, Followers, Prefix, followers

BACK_OFF = 1.0  # what a shorter run counts for beside the counts of a longer one

Path = tuple[float, Prefix, Prefix]  # its score times -1, the ranks of its tokens, the tokens
Column = Sequence[tuple[int, float]]  # tokens of one depth with their log-probabilities, the best first
# (tokens before, tokens of a column) -> their log-probabilities
Language = Callable[[Prefix, Sequence[int]], Sequence[float]]


@dataclass(frozen=True)
class NGrams:
    """Counts of single tokens, and of runs of up to `order` tokens."""

    known: Followers
    single: Counter
    total: int
    order: int
    totals: dict[Prefix, int] = field(default_factory=dict)  # run -> how often it was counted, once asked for

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
        return self.logprobs(before, (token,), words)[0]

    def logprobs(self, before: Prefix, tokens: Sequence[int], words: int) -> list[float]:
        """The same of several tokens."""
        probs = [(self.single[token] + 1) / (self.total + words) for token in tokens]
        for n in range(1, min(self.order, len(before) + 1)):
            run = tuple(before[-n:])
            seen = self.known.get(run)
            if seen is None:
                break
            whole = self.totals.get(run)
            if whole is None:
                whole = self.totals[run] = seen.total()
            probs = [
                (seen.get(token, 0) + BACK_OFF * p) / (whole + BACK_OFF)
                for token, p in zip(tokens, probs, strict=True)
            ]
        return [math.log(p) for p in probs]


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
    for depth, column in enumerate(columns, 1):
        born: dict[Prefix, list] = {}
        tokens = [token for token, _ in column]
        for last, paths in states.items():
            likely = language(last, tokens) if weight else [0.0] * len(column)
            for rank, ((token, own), logprob) in enumerate(zip(column, likely, strict=True)):
                ends = (*last, token)[-keep:] if keep and depth < len(columns) else ()
                born.setdefault(ends, []).append((own + weight * logprob, rank, token, paths))
        states = {ends: longer(ways, count) for ends, ways in born.items()}
    every = sorted(path for paths in states.values() for path in paths)
    return [(-minus, tokens) for minus, _, tokens in every[:count]]


def longer(ways: list[tuple[float, int, int, list[Path]]], count: int) -> list[Path]:
    """The best `count` paths that go on by one token in one of some ways: what is gained, rank, token,
    and the paths that it follows, the best first.
    """
    found = []
    for gain, rank, token, paths in ways:
        for minus, ranks, tokens in paths:
            if len(found) == count and minus - gain > found[-1][0]:
                break  # of those behind it none is better
            insort(found, (minus - gain, (*ranks, rank), (*tokens, token)))
            del found[count:]
    return found


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
