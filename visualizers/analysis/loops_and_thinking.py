"""Spans and loops of a lane's text: what each holds, how certain the target was in it, how many drafted
tokens were accepted there, and how far a relaxed verifier went from the target.

Folds a trace, live or loaded; every number is measured and comes with its count.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from decoders.trace.number_format import many, number
from decoders.trace.repetition import Loop, loops
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.spans import Part, Spans, delimiters_of
from decoders.trace.trace import Trace
from visualizers.analysis.cost_summary import share
from visualizers.analysis.lane_stats import LaneFacts

IN_LOOP, OUTSIDE, ALL = "in a loop", "outside loops", "the whole text"
NOT_STORED = "not among the stored tokens"


@dataclass
class Row:
    """What was measured in one kind of span. bits: entropies of the target; drafted, accepted: tokens that
    stood there; variations: total variation of a relaxed verifier at its tested places.
    """

    name: str
    tokens: int
    bits: list[float]
    drafted: int
    accepted: int
    variations: list[float]

    @property
    def entropy(self) -> float | None:
        """The mean entropy in bits."""
        return mean(self.bits)

    @property
    def acceptance(self) -> float | None:
        """Accepted over drafted tokens."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def variation(self) -> float | None:
        """The mean total variation."""
        return mean(self.variations)


@dataclass
class Report:
    """A lane's spans and loops. parts: of each token of the output; ends: place -> p(end of thinking) before
    it, None where it is not among the stored tokens; forced: places that the budget wrote.
    """

    texts: list[str]
    parts: list[Part | None]
    loops: list[Loop]
    rows: list[Row]
    ends: dict[int, float | None]
    forced: list[int]
    spent: int  # tokens of reasoning
    budget: int | None
    lossy: bool  # whether a relaxed verifier ran

    def row(self, name: str) -> Row:
        """The row of this name."""
        return next(one for one in self.rows if one.name == name)

    def text_of(self, loop: Loop) -> str:
        """What the loop writes again and again, with signs for white space."""
        return "".join(self.texts[loop.first : loop.begins])

    @property
    def longest(self) -> Loop | None:
        """The loop of the most tokens."""
        return max(self.loops, key=lambda loop: loop.stop - loop.first, default=None)

    @property
    def sentence(self) -> str:
        """What there is to see."""
        return " ".join(filter(None, (loop_sentence(self), thinking_sentence(self)))) or (
            "This text has no loop, and no span that the lane's delimiters open."
        )


def loops_and_thinking(trace: Trace, count: int | None = None) -> Report:
    """The report of the first `count` steps of a trace (all, if None)."""
    facts = LaneFacts(trace, count)
    delimiters = delimiters_of(trace.shaping)
    spans = Spans(delimiters, (trace.vocabulary.get(token, b"") for token in trace.prompt))
    closing, opened = [], []  # per token: what would close the open reasoning, None if none is open
    for token in facts.tokens:
        opened.append(spans.opened.closes.encode() if spans.reasoning and spans.opened else None)
        spans.feed(trace.vocabulary.get(token.token, b""))
    parts = spans.parts[spans.prompt :]
    found = loops([token.token for token in facts.tokens])
    copies = {place for loop in found for place in range(loop.begins, loop.stop)}
    measures = [event for step in trace.steps[:count] for event in step.of(Measure)]
    rows = [row(facts, measures, name, places) for name, places in kinds(parts, copies)]
    budget = trace.shaping.get("thinking_budget")
    forced = {event.node for event in measures if event.name == ScoreName.THINKING_BUDGET}
    recorded = {event.node: event.total for event in measures if event.name == ScoreName.END_OF_THINKING}
    closing = {place: text for place, text in enumerate(opened) if text is not None}
    return Report(
        texts=[token.text for token in facts.tokens],
        parts=parts,
        loops=found,
        rows=rows,
        ends={place: end_at(facts, recorded, place, text) for place, text in closing.items()},
        forced=[place for place, token in enumerate(facts.tokens) if token.node in forced],
        spent=spans.spent,
        budget=budget if isinstance(budget, int) and budget else None,
        lossy=any(event.name == ScoreName.TOTAL_VARIATION for event in measures),
    )


def kinds(parts: list[Part | None], copies: set[int]) -> list[tuple[str, set[int]]]:
    """The kinds of spans that a text has, with their places; a place may be of two kinds."""
    places = range(len(parts))
    found: list[tuple[str, set[int]]] = [
        (str(part), {at for at in places if parts[at] is part}) for part in Part if part in parts
    ]
    if copies:
        found += [(IN_LOOP, copies), (OUTSIDE, {*places} - copies)]
    return [*found, (ALL, {*places})]


def row(facts: LaneFacts, measures: Iterable[Measure], name: str, places: set[int]) -> Row:
    """What was measured at these places; a drafted token belongs to the place where it stood."""
    position = facts.nodes.position
    entropies = [facts.tokens[at].entropy for at in sorted(places)]
    drafted = [one for made in facts.rounds for one in made.drafted if position[one.node] - 1 in places]
    return Row(
        name,
        len(places),
        [nats / math.log(2) for nats in entropies if nats is not None],
        len(drafted),
        sum(one.accepted for one in drafted),
        [
            event.total
            for event in measures
            if event.name == ScoreName.TOTAL_VARIATION and position.get(event.node) in places
        ],
    )


def end_at(facts: LaneFacts, recorded: dict[int, float], place: int, closes: bytes) -> float | None:
    """The probability that reasoning ends with the token at a place: as recorded, or that of the stored token
    that spells the whole end; None if there is none.
    """
    token = facts.tokens[place]
    if (known := recorded.get(facts.nodes.parent[token.node])) is not None:
        return known
    vocabulary = facts.trace.vocabulary
    spelled = [p for one, p in token.top if vocabulary.get(int(one), b"").strip() == closes]
    return math.exp(max(spelled)) if spelled else None


def mean(values: list[float]) -> float | None:
    """The mean; None without a value."""
    return math.fsum(values) / len(values) if values else None


def loop_sentence(report: Report) -> str:
    """Where the longest loop is, and how acceptance and entropy in loops compare with outside."""
    loop = report.longest
    if loop is None:
        return ""
    said = (
        f"From token {loop.first + 1} on, {many(loop.period, 'token')} "
        f"{'is' if loop.period == 1 else 'are'} written {loop.copies} times."
    )
    inside, outside = report.row(IN_LOOP), report.row(OUTSIDE)
    compared = [
        f"{what} is {show(a)} in loops and {show(b)} outside"
        for what, a, b, show in (
            ("acceptance", inside.acceptance, outside.acceptance, share),
            ("the target's mean entropy", inside.entropy, outside.entropy, bits),
            ("the mean total variation from the target", inside.variation, outside.variation, number),
        )
        if a is not None and b is not None
    ]
    if not compared:
        return said
    text = "; ".join(compared)
    return f"{said} {text[0].upper()}{text[1:]}."


def thinking_sentence(report: Report) -> str:
    """How long the reasoning is, and whether its end was forced."""
    if Part.REASONING not in report.parts:
        return ""
    said = f"{many(report.spent, 'token')} of reasoning"
    if report.budget:
        said += f", with a budget of {report.budget} for a span"
    forced = "; its end was forced" if report.forced else ""
    unknown = sum(p is None for p in report.ends.values())
    missing = f" p(end of thinking) is {NOT_STORED} at {many(unknown, 'place')}." if unknown else ""
    return f"{said}{forced}.{missing}"


def bits(value: float) -> str:
    """An entropy in words."""
    return f"{value:.1f} bits"


def cells(report: Report) -> list[list[str]]:
    """The rows as a table: span, tokens, entropy, acceptance and, of a relaxed verifier, loss; all with their
    counts.
    """

    def counted(value: float | None, show: Callable[[float], str], of: int, what: str) -> str:
        return "—" if value is None else f"{show(value)} ({many(of, what)})"

    made: list[list[str]] = []
    for one in report.rows:
        cell: list[Any] = [
            one.name,
            str(one.tokens),
            counted(one.entropy, bits, len(one.bits), "token"),
            counted(one.acceptance, share, one.drafted, "drafted token"),
        ]
        if report.lossy:
            cell.append(counted(one.variation, lambda value: number(value, 3), len(one.variations), "place"))
        made.append(cell)
    return made
