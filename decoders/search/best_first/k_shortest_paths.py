"""The k cheapest paths of an acyclic automaton whose edge costs come from a model and depend on the history.

Richardson, Berant and Kuhn (2018), Polyglot Semantic Parsing in APIs. Yen's algorithm with Lawler's rule.
`expand` computes the costs.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import networkx as nx

from decoders.constraints.trie import TrieNode, trie_of


@dataclass
class Automaton:
    """`edges[state][token]` is the next state; all paths lead from `start` to `end`."""

    edges: dict[int, dict[int, int]]
    start: int
    end: int
    layers: list[list[int]] = field(init=False)  # states by the longest way from the start

    def __post_init__(self) -> None:
        graph = nx.DiGraph((state, to) for state, below in self.edges.items() for to in below.values())
        self.layers = [sorted(layer) for layer in nx.topological_generations(graph)]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], end: int, merge: bool = True) -> "Automaton":
        """The automaton of these outputs, each followed by the token `end`: the smallest one, or a trie whose
        leaves alone are one state.
        """
        edges: dict[int, dict[int, int]] = {0: {}}  # state 0 is the end
        known: dict[tuple, int] = {}

        def state(node: TrieNode) -> int:
            below = {token: state(child) for token, child in node.children.items()}
            if node.ends:
                below[end] = 0
            key = tuple(sorted(below.items()))
            if not merge or key not in known:
                known[key] = len(edges)
                edges[known[key]] = below
            return known[key]

        return cls(edges, state(trie_of(map(list, sequences))), 0)

    def walk(self, tokens: Sequence[int]) -> int | None:
        """The state after these tokens from the start on, None if there is no such path."""
        state = self.start
        for token in tokens:
            if token not in self.edges[state]:
                return None
            state = self.edges[state][token]
        return state


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """A path from the start to `state`. `node`: its node in the token tree; `cost`: of all its edges."""

    state: int
    cost: float
    node: int
    tokens: tuple[int, ...] = ()
    before: "Prefix | None" = None

    def chain(self) -> list["Prefix"]:
        """All prefixes of this one, the shortest first, itself last."""
        chain = [self]
        while chain[-1].before is not None:
            chain.append(chain[-1].before)
        return chain[::-1]


@dataclass(frozen=True, slots=True)
class Offer:
    """An edge as the model sees it after a prefix. `node`: of the longer prefix, made when it is tried."""

    token: int
    cost: float


@dataclass(frozen=True, slots=True)
class Searched:
    """One search: from `root` on, without the edges of `blocked` there; `path` is the cheapest, or None."""

    root: Prefix
    blocked: frozenset[int]
    path: Prefix | None


class PathSearch:
    """The search for paths. `expand`: prefixes -> the costs of each one's edges; `tried`: (prefix, offer) ->
    the node of the longer prefix; `lost`: called with (loser, winner) where two prefixes meet in a state;
    `finish`: (cost, tokens) -> the cost of a whole path.
    """

    def __init__(
        self,
        automaton: Automaton,
        expand: Callable[[list[Prefix]], list[list[Offer]]],
        tried: Callable[[Prefix, Offer], int],
        lost: Callable[[Prefix, Prefix], None] = lambda loser, winner: None,
        finish: Callable[[float, int], float] = lambda cost, length: cost,
        graph_beam: int = 0,
    ):
        self.automaton, self.expand, self.tried = automaton, expand, tried
        self.lost, self.finish, self.graph_beam = lost, finish, graph_beam

    def best(self, root: Prefix, blocked: frozenset[int] = frozenset()) -> Prefix | None:
        """The cheapest path from a prefix to the end, where each state keeps only its cheapest prefix."""
        cheapest = {root.state: root}
        for layer in self.automaton.layers:
            here = [cheapest[s] for s in layer if s in cheapest and s != self.automaton.end]
            for prefix, offers in zip(here, self.expand(here) if here else (), strict=True):
                free = [o for o in offers if not (prefix is root and o.token in blocked)]
                free = sorted((o for o in free if o.cost < float("inf")), key=lambda o: o.cost)
                for offer in free[: self.graph_beam or None]:
                    self._relax(cheapest, self._longer(prefix, offer))
        return cheapest.get(self.automaton.end)

    def _longer(self, prefix: Prefix, offer: Offer) -> Prefix:
        state, tokens = self.automaton.edges[prefix.state][offer.token], (*prefix.tokens, offer.token)
        cost = prefix.cost + offer.cost
        if state == self.automaton.end:
            cost = self.finish(cost, len(tokens) - 1)
        return Prefix(state, cost, self.tried(prefix, offer), tokens, prefix)

    def _relax(self, cheapest: dict[int, Prefix], one: Prefix) -> None:
        other = cheapest.get(one.state)
        if other is None or one.cost < other.cost:
            cheapest[one.state] = one
            one, other = other, one
        if one is not None and other is not None:
            self.lost(one, other)

    def k_best(self, start: Prefix, k: int) -> Iterator[Searched | Prefix]:
        """Yields each search as it is made, and the k cheapest paths as they are found, cheapest first.

        For each prefix of the newest path, searches for the cheapest continuation that no earlier path takes
        after the same prefix. No search is repeated.
        """
        path = self.best(start)
        yield Searched(start, frozenset(), path)
        shortest: list[Prefix] = []
        heap: list[tuple[float, int, Prefix]] = []
        tried: set[tuple] = set()
        seen = {path.tokens} if path else set()
        while path is not None:
            shortest.append(path)
            yield path
            if len(shortest) == k:
                return
            for root in path.chain()[:-1]:
                blocked = branches(shortest, root)
                edges = self.automaton.edges[root.state].keys()
                if (
                    len(root.tokens) < len(start.tokens)
                    or blocked >= edges
                    or (root.tokens, blocked) in tried
                ):
                    continue
                tried.add((root.tokens, blocked))
                spur = self.best(root, blocked)
                yield Searched(root, blocked, spur)
                if spur is not None and spur.tokens not in seen:
                    seen.add(spur.tokens)
                    heapq.heappush(heap, (spur.cost, len(seen), spur))
            path = heapq.heappop(heap)[2] if heap else None


def branches(shortest: list[Prefix], root: Prefix) -> frozenset[int]:
    """The tokens that the shortest paths so far take directly after the prefix `root`."""
    length = len(root.tokens)
    return frozenset(p.tokens[length] for p in shortest if p.tokens[:length] == root.tokens)
