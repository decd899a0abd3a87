"""Chunking-free retrieval: finds a passage of the prompt's document by its first tokens, and then its end
without decoding the text between.

Qian et al. (2024), Grounding Language Model with Chunking-Free In-Context Retrieval: constrained sentence-
prefix decoding, then skip decoding. A passage is a path of the lane's tree.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from decoders.constraints.spelling import spelt
from decoders.constraints.trie import TrieNode, trie_of
from decoders.document import document_of, sentences_of
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

BETWEEN = "\n"  # separates two passages
WAYS = {
    "score": "The prefixes with the best mean of log p, wherever they branch.",
    "first-token": "As in the authors' code: the most likely first tokens, and one sentence for each.",
}


def merge_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of sentences (both ends included) in their order; ranges that overlap become one."""
    kept: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if kept and first <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(last, kept[-1][1]))
        else:
            kept.append((first, last))
    return kept


@dataclass
class Prefix:
    """A prefix of sentences: its place in the trie of sentences, its node, its sum of log p, and the sentence
    that it identifies, None while several sentences begin with it.
    """

    place: TrieNode
    node: int
    total: float = 0.0
    length: int = 0
    group: int = -1  # its first token
    sentence: int | None = None

    @property
    def score(self) -> float:
        """The mean of log p, 0 for no tokens."""
        return self.total / max(1, self.length)


@dataclass
class Passages:
    """The sentences of a document as token sequences, and the model's scores of them."""

    lane: Lane
    document: str
    spans: list[tuple[int, int]] = field(init=False)
    below: dict[tuple[int, int], int] = field(default_factory=dict)  # (node, token) -> node
    own: dict[int, float] = field(default_factory=dict)  # node -> log p of its token
    ends: dict[int, tuple[float, int]] = field(default_factory=dict)  # node -> (log p of an end, its token)
    shown: set[int] = field(default_factory=set)  # nodes whose distributions are recorded
    why: dict[int, str] = field(default_factory=dict)  # node -> why it is not output

    def __post_init__(self) -> None:
        lane, self.spans = self.lane, sentences_of(self.document)
        self.target = lane.models["target"]
        self.before = self.target.bytes_of(lane.tree.tokens[lane.tip])
        first: dict[tuple[int, ...], int] = {}  # equal sentences are one, at the place of the first
        for number in range(len(self.spans)):
            first.setdefault(tuple(self.tokens(number, number)[: lane.left]), number)
        self.numbers = list(first.values())
        self.trie = trie_of(map(list, first))

    def tokens(self, first: int, last: int) -> list[int]:
        """The tokens of a passage, tokenized sentence by sentence so that each ends at a token."""
        return [token for piece in self.pieces(first, last) for token in piece]

    def pieces(self, first: int, last: int) -> list[list[int]]:
        """The same, one list per sentence."""
        made, before = [], self.before
        for number in range(first, last + 1):
            begin = self.spans[number][0] if number == first else self.spans[number - 1][1]
            text = self.document[begin : self.spans[number][1]]
            made.append(spelt(self.target, self.lane.eos, before if number == first else b" ", text))
        return made

    def sentences(self, place: TrieNode) -> list[int]:
        """The sentences below a place of the trie."""
        sentences_below, stack = [], [place]
        while stack:
            place = stack.pop()
            sentences_below += [self.numbers[n] for n in place.ends]
            stack += place.children.values()
        return sorted(sentences_below)

    def add(self, above: int, token: int, logprob: float) -> int:
        """The node of a token, proposed if it is new."""
        if (above, token) not in self.below:
            shown = logprob if math.isfinite(logprob) else None
            node = self.below[above, token] = self.lane.propose(above, token, shown, fill="fixed")
            self.own[node] = logprob
        return self.below[above, token]

    def read(self, tokens: list[int]) -> list[int]:
        """The nodes of a text; nodes that have no score yet are scored in one forward."""
        lane, node, nodes = self.lane, self.lane.tip, []
        for token in tokens:
            above, node = node, self.below.get((node, token))
            if node is None:
                node = self.below[above, token] = lane.tree.add(above, token)
            nodes.append(node)
        if all(node in self.ends for node in nodes):
            return nodes
        order = [lane.tip, *nodes]
        logits = lane.score(order)  # [1 + T, V]
        rows = log_softmax(logits)
        for slot, (row, node, token) in enumerate(zip(rows, nodes, tokens, strict=False)):
            if node not in self.own:
                self.own[node] = float(row[token])
                shown = self.own[node] if math.isfinite(self.own[node]) else None
                lane.propose(order[slot], token, shown, slot=slot, fill="fixed", node=node)
        news = [place for place, node in enumerate(order) if node not in self.shown]
        lane.distribution([order[place] for place in news], logits[news])
        self.shown.update(order)
        for row, node in zip(rows[1:], nodes, strict=True):
            self.ends[node] = max((float(row[end]), -end) for end in lane.eos)
        return nodes

    # ---- which sentence -------------------------------------------------------------------------------
    def starts(self) -> Iterator[list[Prefix]]:
        """The prefixes that are kept, round by round; the last ones identify a sentence each."""
        lane, count = self.lane, self.lane.parameters["passages"]
        by_first = lane.parameters["prefix"] == "first-token"
        live = [self._settled(Prefix(self.trie, lane.tip))]
        while waiting := [prefix for prefix in live if prefix.sentence is None]:
            nodes = [prefix.node for prefix in waiting]
            rows = lane.distribution(nodes, lane.score(nodes))  # [N, V]
            self.shown.update(nodes)
            grown = [prefix for prefix in live if prefix.sentence is not None]
            for prefix, row in zip(waiting, rows, strict=True):
                grown += self._grown(prefix, row)
            ranked = sorted(grown, key=lambda prefix: -prefix.score)
            if by_first and waiting[0].length:
                best = {prefix.group: prefix for prefix in reversed(ranked)}
                live = sorted(best.values(), key=lambda prefix: -prefix.score)
            else:
                live = ranked[:count]
            for rank, prefix in enumerate(live, 1):
                where = {} if prefix.sentence is None else {"sentence": prefix.sentence + 1.0}
                lane.record_rank(prefix.node, ScoreName.SENTENCE_PREFIX, prefix.score, rank, **where)
            yield live
        self.live = live

    def _grown(self, prefix: Prefix, row: torch.Tensor) -> list[Prefix]:
        """The prefixes that are one token longer, by a row [V] of log-probabilities."""
        made = []
        for token, place in prefix.place.children.items():
            logprob = float(row[token])
            node = self.add(prefix.node, token, logprob)
            total, length = prefix.total + logprob, prefix.length + 1
            group = prefix.group if prefix.length else token
            several = place.children and place.ends  # one sentence ends here, others continue
            if several:
                made.append(Prefix(place, node, total, length, group, self.numbers[place.ends[0]]))
            longer = Prefix(place, node, total, length, group)
            made.append(longer if several else self._settled(longer))
        return made

    def _settled(self, prefix: Prefix) -> Prefix:
        if len(there := self.sentences(prefix.place)) == 1:
            prefix.sentence = there[0]
        return prefix

    # ---- where it ends ----------------------------------------------------------------------------------
    def end_of(self, first: int) -> int:
        """The sentence after which the end of the text is most likely, from one forward over what follows."""
        lane, last, pieces = self.lane, first, self.pieces(first, len(self.spans) - 1)
        room, total = min(lane.parameters["passage_tokens"], max(1, lane.left - 1)), len(pieces[0])
        while last + 1 < len(self.spans) and total + len(pieces[last + 1 - first]) <= room:
            last += 1
            total += len(pieces[last - first])
        nodes = self.read(self.tokens(first, last)[: lane.left])
        ends, at = [], 0
        for piece in pieces[: last - first + 1]:
            at += len(piece)
            ends.append(nodes[min(at, len(nodes)) - 1])
        values = [self.ends[node][0] for node in ends]
        best = max(range(len(ends)), key=lambda place: values[place])
        for place, node in enumerate(ends):
            if math.isfinite(values[place]):
                where = {"sentence": first + place + 1.0, "from": first + 1.0}
                lane.record_rank(
                    node, ScoreName.END_OF_TEXT, values[place], 1 if place == best else None, **where
                )
        sentences = many(len(ends), "sentence")
        lane.note(
            f"From sentence {first + 1} on {sentences} fit in {room} tokens; the text is most likely to end "
            f"after sentence {first + best + 1}, with p = {math.exp(values[best]):.3g}."
        )
        self.why[nodes[-1]] = f"the passage ends with sentence {first + best + 1}"
        return first + best


@strategy(
    name="cfic",
    title="Chunking-free retrieval (CFIC)",
    family="search",
    parameters=(
        integer("passages", 3, "Sentences at which a passage may begin (k).", low=1, high=16),
        integer("passage_tokens", 64, "Tokens of the longest passage (d).", low=1, high=1024),
        choice("prefix", "score", "Which prefixes are kept.", WAYS),
    ),
    papers=("grounding-language-model-with-chunking-free-in",),
    view="document",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("frontier", parameters["prefix"], WAYS[parameters["prefix"]]),
        Part(
            "length policy", "skip decoding", "One forward over what follows shows where the text would end."
        ),
    ],
)
def cfic(lane: Lane) -> Iterator[None]:
    """Answers with passages of the prompt's own document, word for word, and decodes only their first tokens.

    1. The document is the part of the prompt before its last blank line. Its sentences form a trie of tokens.
    2. Sentence prefix: prefixes of sentences grow token by token in the trie, and the `passages` best by
       `1/|w| sum log p(w_n | w_<n)` are kept, until each identifies one sentence.
    3. Skip: one forward reads the document from each such sentence on, up to passage_tokens tokens. The
       passage ends with the sentence after which the end of the text is most likely; no token is drawn.
    4. Passages that overlap become one, and all are output in the order of the document, one per line.

    Equal sentences are found at their first occurrence. A model without an end-of-text token cannot say where
    a passage ends, and a prompt without a blank line has no document: then this is greedy decoding.
    """
    prompt = b"".join(lane.models["target"].bytes_of(t) for t in lane.tree.tokens[: lane.tree.trunk])
    document = document_of(prompt.decode("utf-8", "replace"))
    if not lane.eos or not sentences_of(document) or "\ufffd" in document:
        lane.note(
            "There is no document here: a text, a blank line, and a question after it. So this is greedy "
            "decoding."
        )
        yield from greedy(lane)
        return
    passages = Passages(lane, document)
    for _ in passages.starts():
        yield
    ranges = []
    for prefix in passages.live:
        ranges.append((prefix.sentence, passages.end_of(prefix.sentence)))
        yield
    commit_passages(lane, passages, merge_ranges(ranges))


def commit_passages(lane: Lane, passages: Passages, ranges: list[tuple[int, int]]) -> None:
    """Outputs the passages as one text with its end, and judges all other nodes."""
    tokens: list[int] = []
    for place, (first, last) in enumerate(ranges):
        between = passages.pieces(first, last)
        if place:
            between[0] = spelt(
                passages.target, lane.eos, b" ", BETWEEN + passages.document[slice(*passages.spans[first])]
            )
        tokens += [token for piece in between for token in piece]
    path = passages.read(tokens[: lane.left])
    inner = {lane.tree.parents[node] for node in passages.own}
    for node in passages.own:
        if node not in inner and node not in path:
            lane.verdict(node, "pruned", reason=passages.why.get(node, "another sentence was more likely"))
    logprobs = [passages.own[node] for node in path]
    if len(path) < lane.left:
        logprob, end = passages.ends[path[-1]]
        if math.isfinite(logprob):
            path = [*path, lane.propose(path[-1], -end, logprob)]
            logprobs.append(logprob)
    written = max((prefix.length for prefix in passages.live), default=0)
    lane.note(
        f"Sentences differ after at most {many(written, 'token')}; {many(len(tokens), 'token')} of "
        f"{many(len(ranges), 'passage')} are output."
    )
    lane.commit(path, logprobs)
