"""One event in a few words, and the numbers that it holds: what stands beside the line of code that ran."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from decoders.explain.verdicts import reason_of, status_in_words
from decoders.trace.events import Cell, Commit, Depend, Distribution, Event, Forward, Note, Propose, Verdict
from decoders.trace.node_index import NodeIndex
from decoders.trace.number_format import many
from decoders.trace.scores import AutomatonEdge, AutomatonState, ConstraintPlace, Measure, Rank, Score
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer.inspector.parts import probability
from visualizers.scene.words import score_name

TOKENS, OFFERED, PARTS = 6, 3, 4  # at most so many tokens, tokens on offer, and parts of a score
PLACES = {"causal", "conflict"}  # dependencies between positions, not nodes


@dataclass(frozen=True)
class Said:
    """What happened, the numbers by name, and the node that it happened to."""

    what: str
    values: list[tuple[str, str]] = field(default_factory=list)
    node: int | None = None
    why: str | None = None


class Wording:
    """Words events of a trace."""

    def __init__(self, trace: Trace):
        self.vocabulary, self.nodes = trace.vocabulary, NodeIndex(trace.prompt)

    def add(self, event: Event) -> None:
        """A node that later events may name."""
        if isinstance(event, Propose):
            self.nodes.add(event)

    def word(self, token: int | None) -> str:
        """A token as text."""
        return visible(self.vocabulary.get(token, b"?"))

    def text(self, node: int) -> str:
        """The token of a node as text."""
        return self.word(self.nodes.token.get(node))

    def texts(self, nodes: list[int]) -> str:
        """Some tokens as text, the first ones of many."""
        rest = f" and {len(nodes) - TOKENS} more" if len(nodes) > TOKENS else ""
        return " ".join(map(self.text, nodes[:TOKENS])) + rest

    def of_group(self, events: list[Event]) -> Said:
        """Events that one line of code recorded one after the other."""
        first = self.said(events[0])
        if len(events) == 1:
            return first
        match events[0]:
            case Propose(source=source):
                by = ", ".join(dict.fromkeys(self.word(event.token) for event in events[:TOKENS]))
                rest = f" and {len(events) - TOKENS} more" if len(events) > TOKENS else ""
                return Said(f"{len(events)} tokens proposed by {source}: {by}{rest}", [], events[-1].node)
            case Verdict(status=status):
                nodes = self.texts([event.node for event in events])
                what = f"{len(events)} tokens {status_in_words(status)}: {nodes}"
                return Said(what, [], events[-1].node, first.why)
            case _:
                return Said(f"{first.what}, and {len(events) - 1} more", first.values, first.node, first.why)

    def said(self, event: Event) -> Said:
        """An event in words."""
        match event:
            case Forward() | Commit() | Note() | Depend():
                return self._of_many(event)
            case Distribution():
                offered = [(self.word(token), probability(math.exp(p))) for token, p in event.top[:OFFERED]]
                level = f", {event.level}" if event.level else ""
                what = f"{event.view} distribution after {self.text(event.node)}{level}"
                bits = f"{event.entropy / math.log(2):.2f} bits"
                return Said(what, [*offered, ("entropy", bits)], event.node)
            case Propose():
                name = "p" if event.source == "target" else "q"
                known = [] if event.logprob is None else [(name, probability(math.exp(event.logprob)))]
                return Said(f"{self.word(event.token)} proposed by {event.source}", known, event.node)
            case Verdict():
                numbers = {"p": event.p, "q": event.q, "u": event.u, "passes with": event.acceptance}
                known = [(name, probability(p)) for name, p in numbers.items() if p is not None]
                what = f"{self.text(event.node)} {status_in_words(event.status)}"
                return Said(what, known, event.node, reason_of(event, self.vocabulary))
            case Cell():
                known = [] if event.confidence is None else [("p", probability(event.confidence))]
                where = f"position {event.position}, iteration {event.iteration}"
                return Said(f"{self.word(event.token)} {event.state}", known, why=where)
            case Score():
                return self._scored(event)
            case ConstraintPlace() | AutomatonEdge() | AutomatonState():
                return Said(f"the constraint after {self.text(event.node)}", [], event.node)

    def _of_many(self, event: Forward | Commit | Note | Depend) -> Said:
        match event:
            case Forward():
                counts = [("tokens", str(event.tokens)), ("ms", f"{1000 * event.seconds:.1f}")]
                kind = "" if event.kind == event.model else f", {event.kind}"
                return Said(f"forward of the {event.model}{kind}", counts)
            case Commit():
                known = [logprob for logprob in event.logprobs if logprob is not None]
                total = [("Σ log p", signed(sum(known)))] if known else []
                last = event.nodes[-1] if event.nodes else None
                counted = many(len(event.nodes), "token")
                return Said(f"{counted} committed: {self.texts(event.nodes)}", total, last)
            case Note():
                return Said(event.text)
            case Depend():
                ends = (event.source, event.target)
                name: Callable[[int], str] = (
                    (lambda at: f"position {at}") if event.kind in PLACES else self.text
                )
                source, target = map(name, ends)
                return Said(f"{event.kind}: {source} → {target}", [("weight", f"{event.weight:.3g}")])

    def _scored(self, event: Score) -> Said:
        parts = [(score_name(name), signed(value)) for name, value in list(event.parts.items())[:PARTS]]
        known = []
        match event:
            case Rank(rank=int(rank)):
                known = [("rank", str(rank))]
            case Measure(limit=limit) if limit is not None:
                known = [("limit", f"{limit:.4g}")]
        total = (score_name(event.name), signed(event.total))
        return Said(f"{self.text(event.node)}: {total[0]}", [total, *known, *parts], event.node)


def signed(value: float) -> str:
    """`−1.234`."""
    return f"{value:.4g}".replace("-", "−")
