"""The lattice of heads that guess without seeing each other: a few tokens per depth, any of which may follow
any of the depth above (a sausage). Its best paths by the heads and an n-gram model (Kim et al. 2024, Towards
Fast Inference, section 4).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from decoders.datastore import END, Followers, Prefix, followers

BACK_OFF = 1.0  # weight of the shorter run's probability, as a count added to those of the longer run

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
    totals: dict[Prefix, int] = field(default_factory=dict)  # run -> how often it was counted, once needed
    # the last tokens asked about -> run -> see `after`
    cached: dict[Prefix, dict] = field(default_factory=dict)

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, tokens: Prefix, order: int) -> "NGrams":
        """The counts of a store of texts, which are separated by END."""
        single = Counter(token for token in tokens if token != END)
        return cls(followers(tokens, order - 1) if order > 1 else {}, single, single.total(), order)

    def logprob(self, before: Prefix, token: int, words: int) -> float:
        """log P(token | the last order - 1 tokens before it), with a vocabulary of `words` tokens: each order
        is smoothed by the next shorter one, the shortest by adding 1 to each count.
        """
        return self.logprobs(before, (token,), words)[0]

    def logprobs(self, before: Prefix, tokens: Sequence[int], words: int) -> list[float]:
        """The same for several tokens. Results for the newest set of tokens are cached."""
        tokens = (*tokens, words)
        if tokens not in self.cached:
            self.cached.clear()
            self.cached[tokens] = {}
        keep = min(self.order - 1, len(before))
        return self.after(tuple(before[len(before) - keep :]), tokens, self.cached[tokens])[1]

    def after(self, run: Prefix, tokens: Prefix, cached: dict) -> tuple[list[float], list[float]]:
        """The probabilities of `tokens`, whose last entry is the size of the vocabulary, after a run, and
        their logarithms. cached: the results for other runs.
        """
        if run in cached:
            return cached[run]
        *asked, words = tokens
        seen = self.known.get(run) if run else None
        if not run:
            probs = [(self.single[token] + 1) / (self.total + words) for token in asked]
        elif seen is None:
            return cached.setdefault(run, self.after(run[1:], tokens, cached))
        else:
            whole = self.totals.get(run)
            if whole is None:
                whole = self.totals[run] = seen.total()
            shorter, _ = self.after(run[1:], tokens, cached)
            pairs = zip(asked, shorter, strict=True)
            probs = [(seen.get(token, 0) + BACK_OFF * p) / (whole + BACK_OFF) for token, p in pairs]
        cached[run] = (probs, [math.log(p) for p in probs])
        return cached[run]


def best_paths(
    columns: Sequence[Column], count: int, weight: float, before: Prefix, language: Language, order: int
) -> list[tuple[float, Prefix]]:
    """The `count` paths of the largest sum of s_j(x_j) + weight log P(x_j | the order - 1 tokens before),
    found exactly; the best first, ties by the ranks of their tokens. before: the text so far.

    Paths that end in the same order - 1 tokens continue alike, so of these the best `count` are enough. The
    rows of `ranks` are always in lexicographic order, which a stable sort by score keeps among equal ones.
    """
    keep = max(0, order - 1)
    ends = [tuple(before[len(before) - min(keep, len(before)) :])]  # last tokens, which paths may share
    scores, end_of, ranks = np.zeros(1), np.zeros(1, dtype=int), np.zeros((1, 0), dtype=int)
    for depth, column in enumerate(columns, 1):
        tokens, size = [token for token, _ in column], len(column)
        gains = np.array([[own for _, own in column]] * len(ends))  # [ends, C]
        if weight:
            gains = gains + weight * np.array([language(end, tokens) for end in ends])
        longer: dict[Prefix, int] = {}
        matters = keep if depth < len(columns) else 0
        places = [
            longer.setdefault((*end, token)[-matters:] if matters else (), len(longer))
            for end in ends
            for token in tokens
        ]
        totals = (scores[:, None] + gains[end_of]).ravel()
        group = np.array(places).reshape(-1, size)[end_of].ravel()
        best = first_of_each(group, totals, count)
        scores, end_of, ends = totals[best], group[best], list(longer)
        ranks = np.column_stack([ranks[best // size], best % size])
    cached = np.argsort(-scores, kind="stable")[:count]
    chosen = [[columns[at][rank][0] for at, rank in enumerate(row)] for row in ranks[cached].tolist()]
    return list(zip(scores[cached].tolist(), map(tuple, chosen), strict=True))


def first_of_each(group: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The places, ascending, of the `count` largest values in each group; of equal ones the first."""
    order = np.lexsort((-values, group))
    sorted_groups = group[order]
    starts = np.searchsorted(sorted_groups, sorted_groups)  # where the group of each begins
    return np.sort(order[np.arange(len(order)) - starts < count])


def common(path: Sequence[int], text: Sequence[int]) -> int:
    """The length of the common prefix of a path and the text that was written."""
    pairs = zip(path, text, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(path), len(text)))


def oracle(columns: Sequence[Sequence[int]], text: Sequence[int]) -> int:
    """How many of the tokens written the best path of a lattice predicts; `columns` are its tokens."""
    return next(
        (at for at, (column, token) in enumerate(zip(columns, text, strict=False)) if token not in column),
        min(len(columns), len(text)),
    )


def repeats(path: Sequence[int]) -> float:
    """The share of neighbouring tokens that are equal; 0 for fewer than two."""
    pairs = list(zip(path, path[1:], strict=False))
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0
