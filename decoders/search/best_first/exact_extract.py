"""Exact-extract: the most likely span of a passage as the answer, among all of its spans.

A span is a path of the lane's tree. Castel et al. (2021), How Optimal is Greedy Decoding for Extractive
Question Answering? Its encoder-decoder is a causal model here that ends an answer with its end-of-text token.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

IMPOSSIBLE = (
    "The model gives every span of the passage probability 0, so there is no answer; choose another passage, "
    "or longer spans by max_span."
)


@dataclass
class Spans:
    """The passage's suffixes as a trie below the prompt: equal prefixes share their nodes.

    By node, `logprobs` holds the token's log p, `sums` the sum from the first token of the span, `ends` log
    p(END | span), and `likeliest` the token that greedy decoding would write next.
    """

    lane: Lane
    children: dict[tuple[int, int], int] = field(default_factory=dict)  # (node, token) -> node
    logprobs: dict[int, float] = field(default_factory=dict)
    sums: dict[int, float] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    ends: dict[int, tuple[float, int]] = field(default_factory=dict)  # node -> (log p, the end token)
    likeliest: dict[int, int] = field(default_factory=dict)

    def read(self, suffixes: list[list[int]]) -> None:
        """Scores all spans that begin as these suffixes do, in one forward, and frees their slots."""
        lane, start, new = self.lane, self.lane.tip, {}
        for tokens in suffixes:
            node = start
            for length, token in enumerate(tokens, 1):
                above, node = node, self.children.get((node, token))
                if node is None:
                    node = self.children[above, token] = lane.tree.add(above, token)
                    new[node], self.lengths[node] = (above, token), length
        if not new:
            return
        shared = {above for above, _ in new.values() if above not in new and above != start}
        order = [start, *sorted(shared), *new]
        logprobs = log_softmax(lane.score(order))  # [1 + S + N, V]
        row, tops = {node: i for i, node in enumerate(order)}, logprobs.argmax(-1).tolist()
        for node, (above, token) in new.items():
            self.logprobs[node] = float(logprobs[row[above], token])
            self.sums[node] = self.sums.get(above, 0.0) + self.logprobs[node]
            self.ends[node] = max((float(logprobs[row[node], end]), -end) for end in lane.eos)
            self.likeliest[node] = tops[row[node]]
        self.likeliest[start] = tops[0]
        lane.drop(order[1:])

    def score(self, node: int, length_penalty: float) -> float:
        """log p of the span and its end, divided by their number of tokens ** length_penalty."""
        return (self.sums[node] + self.ends[node][0]) / (self.lengths[node] + 1) ** length_penalty

    def greedy_walk(self) -> tuple[list[int], int]:
        """The nodes that greedy decoding passes, and the first token at which it leaves them."""
        node, path = self.lane.tip, []
        while (below := self.children.get((node, self.likeliest[node]))) is not None:
            path.append(below)
            node = below
        return path, self.likeliest[node]


def passage_of(lane: Lane) -> list[int]:
    """The tokens of the prompt before its first line break; all of them if there is none."""
    tokens = lane.tree.tokens[: lane.tree.trunk]
    breaks = [i for i, t in enumerate(tokens) if b"\n" in lane.models["target"].bytes_of(t)]
    return tokens[: breaks[0]] if breaks and breaks[0] else tokens


@strategy(
    name="exact_extract",
    title="Exact-extract",
    family="search",
    parameters=(
        integer("max_span", 12, "Tokens of the longest span.", low=1, high=64),
        integer("starts", 16, "Positions of the passage whose spans share a forward.", low=1, high=256),
        real("length_penalty", 0.0, "A score is log p / length to this power.", low=0.0, high=2.0),
    ),
    papers=("how-optimal-is-greedy-decoding-for-extractive",),
    reads=lambda parameters: {"target": {Capability.FULL_DISTRIBUTION}},  # of spans, likely or not
    view="span_map",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("frontier", "all spans", "All spans of up to max_span tokens of the passage, as one trie."),
    ],
)
def exact_extract(lane: Lane) -> Iterator[None]:
    """Answers with the most likely of all spans of the passage, and compares it with greedy decoding.

    1. The passage is the first line of the prompt. Spans may begin at each of its positions; the model
       reads each suffix once, which scores all spans that begin there. Equal prefixes are read once.
    2. A span's cost is that of its tokens and of the end of the text: `-log p(x_i .. x_j) - log p(END | x_i
       .. x_j)`.
    3. The cheapest span is the answer; if all spans are impossible, there is none. Greedy decoding may take a
       costlier span, or leave the passage.

    A model without an end-of-text token cannot end a span: then this is greedy decoding.
    """
    if not lane.eos:
        lane.note("This model has no end-of-text token, so no span can end: greedy decoding answers.")
        yield from greedy(lane)
        return
    spans, passage, penalty = Spans(lane), passage_of(lane), lane.parameters["length_penalty"]
    max_span, starts = min(lane.parameters["max_span"], max(1, lane.left - 1)), lane.parameters["starts"]
    for first in range(0, len(passage), starts):
        known = set(spans.sums)
        places = range(first, min(first + starts, len(passage)))
        spans.read([passage[i : i + max_span] for i in places])
        for node in sorted(spans.sums.keys() - known):
            record_span(lane, spans, node, penalty)
        lane.note(
            f"Spans that begin at positions {first + 1} to {places[-1] + 1} of {len(passage)} are scored."
        )
        yield
    best = max(spans.sums, key=lambda node: (spans.score(node, penalty), -node))
    if not math.isfinite(spans.score(best, penalty)):
        for node in spans.sums:
            lane.verdict(node, "pruned", reason="a span of probability 0")
        lane.ended_by = IMPOSSIBLE
        return
    compare(lane, spans, best)
    commit_best_span(lane, spans, best, penalty)


def record_span(lane: Lane, spans: Spans, node: int, penalty: float) -> None:
    """Records a span and its score; impossible ones have none."""
    parent, token, length = lane.tree.parents[node], lane.tree.tokens[node], spans.lengths[node]
    lane.propose(parent, token, finite(spans.logprobs[node]), slot=length, fill="fixed", node=node)
    total = spans.score(node, penalty)
    if math.isfinite(total):
        parts = {"span": spans.sums[node], "end": spans.ends[node][0], "length": float(length)}
        lane.record_rank(node, ScoreName.SPAN, total, **parts)


def finite(value: float) -> float | None:
    """The log-probability, None if it is that of an impossible token."""
    return value if math.isfinite(value) else None


def compare(lane: Lane, spans: Spans, best: int) -> None:
    """Marks the greedy walk and notes whether it ends with the same span."""
    walk, last = spans.greedy_walk()
    for node in walk:
        lane.record_rank(node, ScoreName.GREEDY_SPAN, spans.sums[node])
    word = lane.models["target"].bytes_of(last).decode("utf-8", "replace")
    if last not in lane.eos or not walk:
        lane.note(f"Greedy decoding leaves the passage after {many(len(walk), 'token')}, with {word!r}.")
    elif walk[-1] == best:
        lane.note("Greedy decoding ends with the same span.")
    else:
        costs = [-spans.sums[node] - spans.ends[node][0] for node in (walk[-1], best)]
        lane.note(f"Greedy decoding ends with another span: cost {costs[0]:.3f} instead of {costs[1]:.3f}.")


def commit_best_span(lane: Lane, spans: Spans, best: int, penalty: float) -> None:
    """Gives verdicts to all spans and commits the best one with its end."""
    path = lane.tree.path(best, above=lane.tip)
    for rank, node in enumerate(sorted(spans.sums, key=lambda n: (-spans.score(n, penalty), n)), 1):
        if node not in path:
            reason = f"rank {rank} of {many(len(spans.sums), 'span')}, score {spans.score(node, penalty):.3f}"
            lane.verdict(node, "pruned", reason=reason)
    logprob, end = spans.ends[best][0], -spans.ends[best][1]
    above = [lane.tip, *path[:-1], best]
    lane.distribution(above, lane.score(above))  # their slots were freed: the answer is read once more
    last = lane.propose(best, end, logprob)
    lane.verdict(last, "finished", reason="the cheapest span ends here")
    lane.record_rank(best, ScoreName.SPAN, spans.score(best, penalty), 1)
    lane.commit([*path, last], [*(spans.logprobs[node] for node in path), logprob])
