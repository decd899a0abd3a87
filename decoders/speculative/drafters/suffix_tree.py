"""A suffix tree of tokens, and the draft that SuffixDecoding takes from it.

Oliaro et al. (2024), SuffixDecoding (arXiv 2411.04975), section 3. C(N) is how often the run of tokens from
the root to the node N occurs, so C(N) / C(match) is how often N's tokens followed the matched ones.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count

from decoders.datastore import END, Prefix

Node = list[int]  # of the tree: the places in `tokens` right behind each occurrence of its run, in order


class SuffixTree:
    """The suffix tree of `tokens`; END ends a text, and no node goes beyond it.

    No node is stored. A node is the list of its occurrences, so its count is the list's length, and a run of
    any length is found by filtering the occurrences of a shorter one.
    """

    def __init__(self, tokens: Iterable[int] = ()):
        self.tokens: list[int] = []
        self.behind: dict[int, Node] = {}  # token -> the node of the run of that one token
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Appends tokens to the last text."""
        for token in tokens:
            self.tokens.append(token)
            self.behind.setdefault(token, []).append(len(self.tokens))

    def matches(self, text: Sequence[int], longest: int) -> Iterator[tuple[int, Node]]:
        """(m, the node of the last m tokens of `text`) for m = 1 up to `longest`, as far as they occur."""
        node = self.behind.get(text[-1], [])
        for m in range(1, longest + 1):
            if not node:
                return
            yield m, node
            if m < len(text):
                node = [at for at in node if at > m and self.tokens[at - m - 1] == text[-m - 1]]

    def children(self, node: Node) -> dict[int, Node]:
        """Token -> child, the most frequent first; of equally frequent ones, the one that occurred first."""
        below: dict[int, Node] = {}
        for at in node:
            if at < len(self.tokens) and self.tokens[at] != END:
                below.setdefault(self.tokens[at], []).append(at + 1)
        return dict(sorted(below.items(), key=lambda child: -len(child[1])))


@lru_cache(maxsize=8)
def suffix_tree(tokens: Prefix) -> SuffixTree:
    """The suffix tree of a store's tokens, END after each text."""
    return SuffixTree(tokens)


@dataclass(frozen=True)
class Limits:
    """How much is drafted after a match of m tokens: at most alpha m + `offset` tokens, and at most `depth`;
    none of them is deeper in the tree than `depth` or follows the match more rarely than `least`.
    """

    alpha: float = 1.0
    offset: float = 0.0
    least: float = 0.1
    depth: int = 24
    tree: bool = True  # False: only the most frequent child of a node is drafted
    levels: int = 1 << 30  # most tokens after one another
    ends: frozenset[int] = frozenset()  # tokens that are never drafted

    def budget(self, m: int) -> int:
        """Most tokens that are drafted after a match of m tokens."""
        return max(0, min(self.depth, int(self.alpha * m + self.offset + 1e-6)))


@dataclass(frozen=True)
class Guess:
    """A drafted token: the index of the guess before it (-1: the match), and its node in the tree."""

    parent: int
    token: int
    node: Node


@dataclass(frozen=True)
class Speculation:
    """The draft after a match of `matched` tokens, whose node is `match`; parents come first."""

    matched: int = 0
    match: Node = field(default_factory=list)
    guesses: list[Guess] = field(default_factory=list)

    @property
    def score(self) -> float:
        """How many tokens it expects to be accepted: the sum of C(N) / C(match) over its guesses."""
        return sum(len(guess.node) for guess in self.guesses) / max(1, len(self.match))


def expand(tree: SuffixTree, matched: int, match: Node, limits: Limits) -> Speculation:
    """The draft below a match: the most frequent of all open nodes is added until the budget is spent."""
    budget, deepest = limits.budget(matched), min(limits.levels, limits.depth - matched)
    guesses: list[Guess] = []
    heap: list[tuple[int, int, int, Guess]] = []  # (-C, number, depth, guess)
    number = count()  # of equally frequent nodes, the one that was offered first

    def offer(node: Node, index: int, depth: int) -> None:
        children = [(t, child) for t, child in tree.children(node).items() if t not in limits.ends]
        for token, child in children if limits.tree else children[:1]:
            if depth <= deepest and len(child) / len(match) >= limits.least:
                heapq.heappush(heap, (-len(child), next(number), depth, Guess(index, token, child)))

    offer(match, -1, 1)
    while heap and len(guesses) < budget:
        *_, depth, guess = heapq.heappop(heap)
        guesses.append(guess)
        offer(guess.node, len(guesses) - 1, depth + 1)
    return Speculation(matched, match, guesses)


def speculations(tree: SuffixTree, text: Sequence[int], limits: Limits) -> list[Speculation]:
    """The draft for each length of match, as long as anything follows the match."""
    longest, found = min(limits.depth, len(text)) - 1, []
    for m, node in tree.matches(text, longest):
        if not tree.children(node):
            break
        found.append(expand(tree, m, node, limits))
    return found


def best(found: list[Speculation]) -> Speculation:
    """The draft with the highest score; of equal ones that after the longest match."""
    return max(found, key=lambda one: (one.score, one.matched), default=Speculation())
