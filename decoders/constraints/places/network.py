"""A grammar as a network of states, and the states that a text may be in: Earley's algorithm (1970) on
networks of one character per edge.
"""

from collections.abc import Iterable

from decoders.constraints.places.grammar_text import Grammar
from decoders.constraints.places.syntax import (
    Call,
    Chars,
    Part,
    Ranges,
    Repeat,
    Sequence,
    Span,
    Unread,
    holds,
)

MAX_STATES = 4000
MAX_PARTS = 40_000  # that are built: an empty one takes no state, however often it is repeated
MAX_STEPS = 50_000  # for one character of a text


class Network:
    """Every rule is a part of one network; its states are numbers."""

    def __init__(self, grammar: Grammar):
        """Raises Unread if it would be too large, or a rule has no definition."""
        self.moves: list[list[tuple[Ranges, Span, int]]] = []
        self.calls: list[list[tuple[str, Span, int]]] = []
        self.skips: list[list[int]] = []  # states that are reached without a character
        self.built = 0
        self.start = {name: self._state() for name in grammar.rules}
        self.end: dict[int, str] = {}  # last state of a rule -> the rule
        self.owner: list[tuple[int, str]] = []  # (first state after a rule's own, the rule)
        for name, rule in grammar.rules.items():
            last = self._built(rule.part, self.start[name])
            self.end[last] = name
            self.owner.append((len(self.moves), name))
        self.spans = {name: rule.span for name, rule in grammar.rules.items()}
        self.top = grammar.top
        missing = {call for calls in self.calls for call, _, _ in calls} - self.start.keys()
        if missing:
            raise Unread(f"The rule {min(missing)} is not defined here.")

    def _state(self) -> int:
        if len(self.moves) >= MAX_STATES:
            raise Unread("The grammar is too large to follow.")
        self.moves.append([])
        self.calls.append([])
        self.skips.append([])
        return len(self.moves) - 1

    def _built(self, part: Part, at: int) -> int:
        """Adds a part after a state; the state after it."""
        self.built += 1
        if self.built > MAX_PARTS:
            raise Unread("The grammar is too large to follow.")
        if isinstance(part, Chars | Call):
            behind = self._state()
            if isinstance(part, Chars):
                self.moves[at].append((part.ranges, part.span, behind))
            else:
                self.calls[at].append((part.rule, part.span, behind))
            return behind
        if isinstance(part, Sequence):
            for one in part.parts:
                at = self._built(one, at)
            return at
        if isinstance(part, Repeat):
            return self._repeated(part, at)
        behind = self._state()
        for one in part.parts:
            self.skips[self._built(one, self._linked(at))].append(behind)
        return behind

    def _linked(self, at: int) -> int:
        new = self._state()
        self.skips[at].append(new)
        return new

    def _repeated(self, part: Repeat, at: int) -> int:
        for _ in range(part.min_count):
            at = self._built(part.part, at)
        behind = self._state()
        self.skips[at].append(behind)
        if part.max_count is None:
            loop = self._linked(at)
            last = self._built(part.part, loop)
            self.skips[last] += [loop, behind]
            return behind
        for _ in range(part.max_count - part.min_count):
            at = self._built(part.part, self._linked(at))
            self.skips[at].append(behind)
        return behind

    def rule_of(self, state: int) -> str:
        """The rule that a state belongs to."""
        if state < len(self.start):
            return list(self.start)[state]
        return next(name for behind, name in self.owner if state < behind)

    # ---- where a text stands -----------------------------------------------------------------------------

    def begun(self) -> "Chart":
        """Where the empty text stands."""
        chart = Chart()
        return self._closed(chart, [(self.start[self.top], chart)])

    def after(self, chart: "Chart", character: str) -> "Chart | None":
        """Where a text stands after one more character, None if no text continues like that. Raises Unread
        where the text may be read in too many ways.
        """
        code = ord(character)
        moved = [
            (behind, origin)
            for state, origin in chart.items
            for some, _, behind in self.moves[state]
            if holds(some, code)
        ]
        return self._closed(Chart(chart.first), moved) if moved else None

    def may_end(self, chart: "Chart") -> bool:
        """Whether the text is a whole sentence."""
        return any(self.end.get(state) == self.top and origin is chart.first for state, origin in chart.items)

    def awaited(self, chart: "Chart") -> list[tuple[int, Ranges, Span]]:
        """(state, characters, place) of all edges that the next character may take."""
        return [(state, some, span) for state, _ in chart.items for some, span, _ in self.moves[state]]

    def _closed(self, chart: "Chart", reached: Iterable[tuple[int, "Chart"]]) -> "Chart":
        waiting, steps = list(reached), 0
        while waiting:
            steps += 1
            if steps > MAX_STEPS:
                raise Unread("The text may be read in too many ways to follow.")
            item = state, origin = waiting.pop()
            if item in chart.items:
                continue
            chart.items[item] = None
            waiting += [(behind, origin) for behind in self.skips[state]]
            for rule, _, behind in self.calls[state]:
                chart.waiting.setdefault(rule, []).append((behind, origin))
                waiting.append((self.start[rule], chart))
                if rule in chart.empty:
                    waiting.append((behind, origin))
            if (rule := self.end.get(state)) is not None:
                if origin is chart:
                    chart.empty.add(rule)
                waiting += origin.waiting.get(rule, [])
        return chart


class Chart:
    """The possible states after a character: (state, the chart in which its rule began) pairs, in order;
    `waiting`: rule -> the states that continue after it; `empty`: rules that match the empty text here.
    """

    def __init__(self, first: "Chart | None" = None):
        self.first = first or self
        self.items: dict[tuple[int, Chart], None] = {}
        self.waiting: dict[str, list[tuple[int, Chart]]] = {}
        self.empty: set[str] = set()
