"""Lattice decoding: best-first search that completes each text, and merges texts whose recent tokens are
alike.

The graph is the lane's tree plus the merges. Xu, Jonnalagadda and Durrett (2021), Massive-scale Decoding for
Text Generation using Lattices: depth-first completion, or plain best-first search with or without forwards
reserved for endings, and with recombination ("rcb") or zipping ("zip").
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.search.shaped import shaped
from decoders.strategy import Part, constrained
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

TO_THE_END, ONE_STEP, THEN_ENDS = "to the end", "one step", "one step, then to the end"
NEAR = 5  # lengths of merged texts differ by less
LISTED = 500  # at most this many paths are compared as texts
LOOKED_AT = 8  # times k_best tokens are considered, as some are passed over


@dataclass
class Graph:
    """Nodes of the tree and their predecessors. A node that was merged into another stands for that one."""

    root: int
    before: dict[int, list[int]] = field(default_factory=dict)  # node -> predecessors, the first its parent
    became: dict[int, int] = field(default_factory=dict)  # merged-away node -> the node that it became

    def now(self, node: int) -> int:
        """The node that this one was merged into, or itself."""
        while node in self.became:
            node = self.became[node]
        return node

    def first_path(self, node: int) -> list[int]:
        """The nodes from the root, without it, to `node`, by first predecessors."""
        path = []
        while (node := self.now(node)) != self.root:
            path.append(node)
            node = self.before[node][0]
        return path[::-1]

    def follows(self, node: int, ancestor: int) -> bool:
        """Whether `ancestor` comes before `node`, or is it, on any path."""
        seen, front = set(), {self.now(node)}
        while front:
            if self.now(ancestor) in front:
                return True
            seen |= front
            front = {self.now(p) for n in front for p in self.before.get(n, ())} - seen
        return False

    def link(self, node: int, parent: int) -> None:
        """Adds an edge to a node."""
        parents = self.before.setdefault(node, [])
        if parent not in parents:
            parents.append(parent)

    def absorb(self, node: int, into: int) -> None:
        """Merges `node` into `into`, which takes over its other predecessors."""
        for parent in self.before.pop(node, []):
            if self.now(parent) != into:
                self.link(into, self.now(parent))
        self.became[node] = into

    def along(self, node: int, known: dict[int, Any], joined: Callable[[list], Any]) -> Any:
        """Folds `joined` over the predecessors of each node from the root down to `node`; `known` caches the
        results and must have the root's.
        """
        stack = [self.now(node)]
        while stack:
            top = stack[-1]
            parents = {self.now(p) for p in self.before.get(top, ())}
            if missing := [p for p in parents if p not in known]:
                stack += missing
                continue
            if top not in known:
                known[top] = joined([known[p] for p in parents])
            stack.pop()
        return known[self.now(node)]

    def count(self, node: int, known: dict[int, int] | None = None) -> int:
        """The number of paths from the root to a node, by dynamic programming over the graph."""
        return self.along(node, {self.root: 1} if known is None else known, sum)

    def lengths(self, node: int, known: dict[int, Counter] | None = None) -> Counter:
        """Length -> how many paths from the root to a node have it."""
        return self.along(node, {self.root: Counter({0: 1})} if known is None else known, one_longer)

    def paths(self, node: int, limit: int) -> list[list[int]]:
        """Up to `limit` paths from below the root to a node."""
        paths, stack = [], [(self.now(node), [])]
        while stack and len(paths) < limit:
            here, rest = stack.pop()
            if here == self.root:
                paths.append(rest)
                continue
            stack += [(self.now(p), [here, *rest]) for p in {self.now(p) for p in self.before[here]}]
        return paths


def one_longer(before: list[Counter]) -> Counter:
    """Length -> how many paths have it once each of these is one longer."""
    lengths_after: Counter = Counter()
    for lengths in before:
        lengths_after.update({length + 1: count for length, count in lengths.items()})
    return lengths_after


class Search:
    """The heap, the graph and the memory of endings of one run."""

    def __init__(self, lane: Lane):
        given = lane.parameters
        self.lane, self.graph = lane, Graph(lane.tip)
        self.k, self.n, self.zip = given["k_best"], given["ngram"], given["merge"] == "zip"
        self.exponent, self.merging = given["length_penalty"], given["merge"] != "never"
        self.max_length, self.budget, self.spent = lane.left, given["max_forwards"], 0
        kept = given["reserved"] if given["expand"] == THEN_ENDS else 0.0
        self.single = 0 if given["expand"] == TO_THE_END else round((1 - kept) * self.budget)
        self.total: dict[int, float] = {lane.tip: 0.0}
        self.logprob: dict[int, float] = {}
        self.heap: list[tuple[float, int]] = []
        self.endings: dict[tuple[int, ...], list[int]] = {}
        self.finished: list[int] = []

    def length(self, node: int) -> int:
        """Generated tokens down to a node, by the path on which it was found."""
        return self.lane.tree.depths[node] - self.lane.tree.trunk + 1

    def priority(self, node: int) -> float:
        """sum log p / length ** length_penalty."""
        return self.total[node] / max(1, self.length(node)) ** self.exponent

    def offer(self, parent: int) -> list[int]:
        """One forward: the k_best children of a node, most likely first, without those that differ from an
        earlier one only in case or spaces.
        """
        lane = self.lane
        self.spent += 1
        own, logprobs = (rows[0] for rows in shaped(lane, [parent], lane.score([parent])))  # [V]
        values, tokens = logprobs.topk(min(LOOKED_AT * self.k, len(logprobs)))
        made, words = [], set()
        for token, logprob in zip(tokens.tolist(), values.tolist(), strict=True):
            word = lane.models["target"].bytes_of(token).strip().lower()
            if len(made) == self.k or logprob < -1e30:
                break
            if word and word in words:
                continue
            words.add(word)
            node = lane.propose(parent, token, logprob, slot=len(made))
            self.total[node], self.logprob[node] = self.total[parent] + logprob, float(own[token])
            self.graph.link(node, parent)
            lane.record_rank(node, ScoreName.PRIORITY, self.priority(node), sum_logprob=self.total[node])
            made.append(node)
        return made

    def ends(self, node: int) -> bool:
        """Whether the text is complete with this node; if so, it is now among the finished ones."""
        last = self.length(node) >= self.max_length
        if not (last or self.lane.tree.tokens[node] in self.lane.eos):
            return False
        self.finished.append(node)
        why = f"the limit of {self.max_length} new tokens" if last else "end of text"
        self.lane.verdict(node, "finished", reason=why)
        return True

    def run_on(self, node: int) -> Iterator[None]:
        """Continues from a node to an end of text, a merge, or the end of the budget, always with the most
        likely child; the others wait in the heap. While forwards for single steps are left, it takes one step
        only. Yields after each forward but the last.
        """
        while self.spent < self.budget:
            single = self.spent < self.single
            first, *others = self.offer(node) or [None]
            if first is None:
                self.lane.verdict(node, "pruned", reason="the processors leave no token here")
                return
            for other in others:
                if not self.ends(other):
                    heapq.heappush(self.heap, (-self.priority(other), other))
            if self.ends(first) or self.merge(first):
                return
            node = first
            if single:
                break
            if self.spent < self.budget:
                yield
        heapq.heappush(self.heap, (-self.priority(node), node))

    def merge(self, node: int) -> bool:
        """Recombines a node with an earlier one that has the same last n tokens and about the same length;
        else remembers it.
        """
        path = self.graph.first_path(node)
        if not self.merging or len(path) < self.n:
            return False
        key = tuple(self.lane.tree.tokens[n] for n in path[-self.n :])
        for candidate in self.endings.get(key, []):
            other = self.graph.now(candidate)
            near = abs(self.length(candidate) - self.length(node)) < NEAR
            if near and other != node and not self.graph.follows(node, other):
                self.join(node, other)
                return True
        self.endings.setdefault(key, []).append(node)
        return False

    def join(self, node: int, into: int) -> None:
        """Merges `node` into `into`; zipping continues backwards while the tokens before both are equal."""
        lane, graph, depth = self.lane, self.graph, self.n
        pairs = [(node, into)]
        while self.zip and len(pairs) < depth:
            a, b = (graph.now(graph.before[x][0]) for x in pairs[-1])
            same = graph.root not in (a, b) and a != b and lane.tree.tokens[a] == lane.tree.tokens[b]
            if not same or graph.follows(a, b) or graph.follows(b, a):
                break
            pairs.append((a, b))
        for a, b in pairs:
            graph.absorb(a, b)
            lane.verdict(
                a,
                "merged",
                reason="the last token is the same"
                if self.n == 1
                else f"the last {self.n} tokens are the same",
                into=b,
            )
            lane.depend(a, b, 1.0, "recombine")

    def next(self) -> int | None:
        """The best waiting node that was not merged into another."""
        while self.heap:
            node = heapq.heappop(self.heap)[1]
            if not any(n in self.graph.became for n in self.lane.tree.path(node, above=self.graph.root)):
                return node
            self.lane.verdict(node, "pruned", reason="what it follows was merged away")
        return None


FRONTIERS = {
    TO_THE_END: "The best waiting node is completed greedily.",
    ONE_STEP: "The best waiting node is continued by one token, and all its continuations wait.",
    THEN_ENDS: "The best waiting node is continued by one token; the last forwards complete those that wait.",
}


def misfit(parameters: dict) -> str | None:
    """The message to show where not all merged texts would be allowed."""
    if constrained(parameters) and parameters["merge"] != "never":
        return "Texts that meet here would share one state of the constraint; set merge to never."
    return None


@strategy(
    name="lattice",
    title="Lattice",
    family="search",
    parameters=(
        integer("max_forwards", 64, "Maximum number of nodes to expand.", low=1, high=2000),
        choice(
            "expand",
            TO_THE_END,
            "How far the best prefix is continued: to its end; by one token; or by one token until only the "
            "reserved forwards are left, then to the end.",
            (TO_THE_END, ONE_STEP, THEN_ENDS),
        ),
        real(
            "reserved",
            0.5,
            f"Share of the forwards that `{THEN_ENDS}` reserves for completing texts.",
            low=0.0,
            high=1.0,
        ),
        integer("k_best", 5, "Tokens considered after each node.", low=1, high=32),
        choice("merge", "zip", "How texts are merged.", ("zip", "rcb", "never")),
        integer(
            "ngram",
            4,
            "How many of their last tokens must be the same for two texts to merge.",
            low=1,
            high=16,
        ),
        real("length_penalty", 0.75, "The priority is sum log p / length to this power.", low=0.0, high=2.0),
        *PENALTIES,
    ),
    papers=("massive-scale-decoding-for-text-generation-using",),
    together=misfit,
    view="search_graph",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("frontier", f"best first, {parameters['expand']}", FRONTIERS[parameters["expand"]]),
        Part("merge", parameters["merge"], "Texts with the same last ngram tokens continue as one."),
    ],
)
def lattice(lane: Lane) -> Iterator[None]:
    """One graph of many texts: each prefix is completed, and texts with the same ending are merged.

    1. Prefixes wait in a queue by `sum log p / length ** length_penalty`. The best is completed: the most
       likely token is taken each time, and the k_best - 1 others join the queue. In plain best-first search
       it is extended by one token only, optionally with a share of the forwards reserved for completing
       waiting prefixes.
    2. Two texts whose last ngram tokens are the same and whose lengths differ by less than 5 are merged: rcb
       joins their last tokens, zip also all equal tokens before these. The completion stops there. Texts are
       compared along the path on which each was found first, not along paths that a merge added later.
    3. The search ends after max_forwards. The graph's paths are counted, and the most likely finished text is
       taken.

    With penalties and forbidden words, p is the distribution after these processors on a node's first path.

    After a merge, the continuation has been scored after only one of the prefixes, so the score of another
    path is not its probability. A path may also have more tokens than the limit allows; a note says how many
    paths do. The text that is taken is scored by itself and stays within the limit.
    """
    search, node = Search(lane), lane.tip
    while node is not None and search.spent < search.budget:
        yield from search.run_on(node)
        node = search.next() if search.spent < search.budget else None
        lane.note(path_counts(search))
        yield
    yield from take_likeliest_text(lane, search)


def path_counts(search: Search) -> str:
    """How much the graph holds: the number of paths to finished texts, and how many different texts they
    spell.
    """
    graph, known, ends = search.graph, {search.graph.root: 1}, {search.graph.now(n) for n in search.finished}
    count = sum(graph.count(node, known) for node in ends)
    tokens = search.lane.tree.tokens
    different = ""
    if count <= LISTED:
        texts = {tuple(tokens[n] for n in path) for node in ends for path in graph.paths(node, LISTED)}
        different = f", {many(len(texts), 'different text')}"
    merged = f"{many(len(graph.became), 'node')} merged"
    paths = f"{many(search.spent, 'forward')}: {many(count, 'path')} to {many(len(ends), 'end')}"
    return f"{paths}{different}, {merged}."


def too_long(search: Search) -> tuple[int, int]:
    """How many paths to finished texts have more tokens than the limit allows, and how many there are."""
    graph, known = search.graph, {search.graph.root: Counter({0: 1})}
    lengths: Counter = Counter()
    for node in {graph.now(n) for n in search.finished}:
        lengths.update(graph.lengths(node, known))
    return sum(n for length, n in lengths.items() if length > search.max_length), lengths.total()


def take_likeliest_text(lane: Lane, search: Search) -> Iterator[None]:
    """Takes the most likely finished text, or finishes the best prefix greedily; gives verdicts to the rest
    of the queue.
    """
    waiting = sorted(search.heap)
    best = max(search.finished, key=lambda n: (search.priority(n), -n), default=None)
    if best is None and not waiting:
        lane.ended_by = NOTHING_LEFT
        return
    if best is None:
        best = waiting.pop(0)[1]
        lane.note(
            "The forwards are spent, and no text is finished: greedy decoding finishes the best prefix."
        )
    longer, paths = too_long(search)
    if longer:
        lane.note(
            f"{longer:,} of {many(paths, 'path')} {'is' if longer == 1 else 'are'} longer than "
            f"the limit of {search.max_length} new tokens, "
            f"since merged texts may differ in length by less than {NEAR}."
        )
    for rank, (_, node) in enumerate(waiting, 1):
        reason = f"number {rank} of {len(waiting)} still in the queue, priority {search.priority(node):.3f}"
        lane.verdict(node, "pruned", reason=reason)
    path = lane.tree.path(best, above=lane.tip)
    for node in path:
        if node in search.graph.became:
            lane.verdict(node, "accepted", reason="merged, and on the way to the text that is taken")
    lane.record_rank(best, ScoreName.SCORE, search.priority(best), 1)
    lane.commit(path, [search.logprob[n] for n in path])
    yield
    yield from greedy(lane)
