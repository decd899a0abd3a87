"""Where in the typed text of a lane's constraint its output stands, token by token, recorded for pictures.

The constraint decides which tokens are allowed; this file follows the output, character by character. If it
can read a kind or a text only in part, it records nothing.
"""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from decoders.constraints.matchers import choices_of
from decoders.constraints.places import grammar_text, regex_text
from decoders.constraints.places.automaton_graph import AutomatonGraph
from decoders.constraints.places.grammar_text import Grammar, Rule
from decoders.constraints.places.network import Chart, Network
from decoders.constraints.places.schema_text import Schema
from decoders.constraints.places.syntax import Choice, Unread, literal
from decoders.engine.tree import Tree
from decoders.observer import Observer
from decoders.trace.events import Event
from decoders.trace.scores import AutomatonEdge, AutomatonState, ConstraintPlace

KINDS = ("json_schema", "regex", "lark", "gbnf", "choices")
MAX_PLACES = 32  # that one record names
LONGEST = 4000  # characters of an output that are followed
LONGEST_TYPED = 20_000  # characters of a grammar that are read: more would take long in the app's own process


@dataclass(frozen=True)
class Standing:
    """Where an output stands: its text, the bytes of an unfinished character, its chart and its state of the
    automaton, and the edges of the automaton that its newest token took.
    """

    text: str
    rest: bytes
    chart: Chart | None
    state: int | None
    took: tuple[int, ...] = ()


class Places:
    """The places of one typed constraint."""

    def __init__(self, kind: str, typed: str):
        """Raises Unread if nothing of it can be followed."""
        if len(typed) > LONGEST_TYPED:
            raise Unread("The grammar is too large to follow.")
        self.schema = Schema(typed) if kind == "json_schema" else None
        self.graph: AutomatonGraph | None = None
        if self.schema is None:
            grammar = grammar_of(kind, typed)
            self.network = Network(grammar)
            # the text can be followed even where its automaton is none or too large
            with suppress(Unread, RecursionError):
                self.graph = AutomatonGraph(grammar)

    def start(self) -> Standing:
        """Where the empty output stands."""
        return Standing("", b"", None if self.schema else self.network.begun(), 0 if self.graph else None)

    def after(self, standing: Standing, spelling: bytes) -> Standing | None:
        """Where the output stands after one more token; None if it cannot be followed any further."""
        given = standing.rest + spelling
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        added = decoder.decode(given)
        rest = decoder.getstate()[0]
        text, chart, state = standing.text + added, standing.chart, standing.state
        if len(text) > LONGEST:
            return None
        took: list[int] = []
        for character in added:
            if chart is not None and (chart := self.followed(chart, character)) is None:
                return None
            if state is not None and (below := self.graph.after(state, character)) is not None:
                took.append(self.graph.edge_of[state, below])
                state = below
        return Standing(text, rest, chart, state, tuple(dict.fromkeys(took)))

    def followed(self, chart: Chart, character: str) -> Chart | None:
        """The chart after one more character, None if it is not known."""
        with suppress(Unread):
            return self.network.after(chart, character)
        return None

    def record(self, standing: Standing, node: int) -> list[Event]:
        """The events that say where an output stands after a node."""
        if self.schema:
            awaited, around = self.schema.places(standing.text)
            over = bool(standing.text.strip()) and not awaited and not around
        else:
            edges = self.network.awaited(standing.chart)
            awaited = [span for _, _, span in edges]
            rules = dict.fromkeys(self.network.rule_of(state) for state, _, _ in edges)
            around = [self.network.spans[rule] for rule in rules]
            over = self.network.may_end(standing.chart)
        places = list((dict.fromkeys(around, False) | dict.fromkeys(awaited, True)).items())[:MAX_PLACES]
        awaited, around = (
            [list(span) for span, comes in places if comes == wanted] for wanted in (True, False)
        )
        events: list[Event] = [ConstraintPlace(node, awaited, around, over)]
        if standing.state is not None:
            where, took = self.graph.where[standing.state], list(standing.took)
            if where.edge is None:
                events.append(AutomatonState(node, where.state, None, None, took))
            else:
                events.append(AutomatonState(node, None, where.edge, where.along, took))
        return events

    def edges(self, node: int) -> list[Event]:
        """The automaton, an event for each of its edges."""
        if self.graph is None:
            return []
        made = []
        for number, edge in enumerate(self.graph.edges):
            ends = edge.source in self.graph.ends, edge.target in self.graph.ends
            made.append(AutomatonEdge(node, number, edge.source, edge.target, edge.label, *ends))
        return made


def grammar_of(kind: str, typed: str) -> Grammar:
    """The grammar of a typed text of any kind but schemas. Raises Unread."""
    if kind in ("lark", "gbnf"):
        return grammar_text.read_grammar(kind, typed)
    if kind == "regex":
        part = regex_text.read_regex(typed)
    elif kind == "choices":
        part = choices(typed)
    else:
        raise Unread("Nothing of this kind can be followed.")
    return Grammar({"": Rule(part, (0, len(typed)))}, "")


def choices(typed: str) -> Choice:
    """Each of a list of choices with its place in the typed text; see `matchers.choices_of`."""
    listed = set(choices_of(typed))
    parts = []
    for piece in re.finditer(r"[^\n]+" if "\n" in typed.strip() else r"[^|]+", typed):
        text = piece[0].strip()
        text = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
        if text in listed:
            start = piece.start() + piece[0].index(text)
            characters = [(sign, start + n, start + n + 1) for n, sign in enumerate(text)]
            parts.append(literal(characters, start + len(text)))
    return Choice(tuple(parts))


class PlaceRecord(Observer):
    """Records the places of a lane's output along its tree; the output begins after `prompt` tokens."""

    def __init__(self, places: Places, tree: Tree, prompt: int, bytes_of: Any, eos: frozenset[int]):
        self.places, self.tree, self.bytes_of, self.eos = places, tree, bytes_of, eos
        self.root = prompt - 1
        self.known: dict[int, Standing | None] = {self.root: places.start()}
        self.automaton_recorded = False

    def at(self, node: int) -> Standing | None:
        """Where the output stands after a node; None if that is not known."""
        above = []
        while node not in self.known:
            if node <= self.root:
                return None
            above.append(node)
            node = self.tree.parents[node]
        standing = self.known[node]
        for below in reversed(above):
            token = self.tree.tokens[below]
            gone = standing is None or token in self.eos
            standing = None if gone else self.places.after(standing, self.bytes_of(token))
            self.known[below] = standing
        return standing

    def committed(self, lane: Any, nodes: list[int]) -> None:
        """Before the first nodes, the automaton is recorded."""
        if not self.automaton_recorded:
            lane.record(*self.places.edges(nodes[0]))
            self.automaton_recorded = True
        for node in nodes:
            if standing := self.at(node):
                lane.record(*self.places.record(standing, node))


def place_record_of(lane: Any) -> PlaceRecord | None:
    """The record of a lane with its parameters; None where nothing can be followed."""
    kind = lane.parameters.get("constraint")
    if kind not in KINDS:
        return None
    try:
        places = Places(kind, lane.parameters["constraint_text"])
    except (Unread, RecursionError):  # or rules, or brackets, too deep within each other
        return None
    return PlaceRecord(places, lane.tree, len(lane.trace.prompt), lane.models["target"].bytes_of, lane.eos)
