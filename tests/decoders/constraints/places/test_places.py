"""Where in a typed constraint an output stands: as engines and Python's own expressions have it."""

import json
import random
import re
from pathlib import Path

import pytest

from decoders.constraints.grammars import Grammar
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.places.automaton_graph import AutomatonGraph
from decoders.constraints.places.network import Network
from decoders.constraints.places.place import Places, grammar_of
from decoders.constraints.places.syntax import Unread, holds
from decoders.lane import Lane, Limits
from decoders.trace.scores import AutomatonEdge, AutomatonState, ConstraintPlace

LETTERS = [chr(code) for code in range(32, 127)] + ["\n"]
EXAMPLES = json.loads(Path("assets/examples/prompts.json").read_text("utf-8"))
SHIPPED = sorted(
    {
        (lane["parameters"]["constraint"], lane["parameters"]["constraint_text"])
        for example in EXAMPLES
        for lane in example.get("lanes", [])
        if lane.get("parameters", {}).get("constraint") in ("regex", "lark", "gbnf", "choices")
    }
)
MORE = [
    ("gbnf", 'root ::= item ("," item)* # a list\nitem ::= [0-9] | "(" root ")"'),
    ("gbnf", 'root ::= [^a-y]{2,3} "\\n" | "a\\"b" .?'),
    ("lark", 'start: "(" start ")" start | \nX: "a".."c"~2 | /[^a-c]\\./ -> other\n?y: X'),
    ("lark", 'start: WORD ["!"] ":" WORD\nWORD: /[a-c]+/'),
    ("regex", r"(ab?|a{2,}c)*\d{2}[\w.-]+(?:x|)\.\n?"),
    ("choices", 'yes\nno way\n" maybe"'),
]


def letters() -> Vocabulary:
    """A vocabulary of one token a character."""
    tokens = [letter.encode() for letter in LETTERS]
    return Vocabulary([*tokens, b""], [len(LETTERS)], [], lambda text: [LETTERS.index(c) for c in text])


@pytest.mark.parametrize(("kind", "typed"), SHIPPED + MORE)
def test_what_may_come_next_is_what_the_engine_allows(kind, typed):
    """On random walks through the language, at every character."""
    engine, network = Grammar(kind, typed, letters()), Network(grammar_of(kind, typed))
    rng = random.Random(typed)
    for _ in range(3):
        state, chart = engine.start(), network.begun()
        for _ in range(24):
            open_ = [LETTERS[token] for token in engine.allowed(state).nonzero()[:, 0].tolist()]
            sets = [some for _, some, _ in network.awaited(chart)]
            assert open_ == [c for c in LETTERS if any(holds(some, ord(c)) for some in sets)]
            assert network.may_end(chart) == engine.may_end(state)
            if not open_:
                break
            letter = rng.choice(open_)
            state = engine.advance(state, LETTERS.index(letter))
            chart = network.after(chart, letter)


@pytest.mark.parametrize("typed", ["a[bc]{1,3}d|ax*", r"(to|tap|top)s?\.", "(a|b)*abb", "x{2}|x{3}y"])
def test_the_automaton_reads_what_pythons_expressions_match(typed):
    graph, rng = AutomatonGraph(grammar_of("regex", typed)), random.Random(typed)
    signs = sorted(set(typed) - set("[]{}()|*?\\,") | {"b", "c"})
    for _ in range(400):
        text = "".join(rng.choices(signs, k=rng.randrange(7)))
        state = 0
        for sign in text:
            state = graph.after(state, sign) if state is not None else None
        ends = state is not None and graph.where[state].state in graph.ends
        assert ends == bool(re.fullmatch(typed, text))


def test_the_automaton_is_the_smallest_and_chains_are_one_edge():
    graph = AutomatonGraph(grammar_of("regex", "(a|b)*abb"))
    assert len(graph.moves) == 4  # the textbook's
    chain = AutomatonGraph(grammar_of("regex", "may|day"))
    assert [edge.label.split(" ") for edge in chain.edges] == [["[dm]", "a", "y"]]
    assert AutomatonGraph(grammar_of("gbnf", 'root ::= a a\na ::= "x" | "yz"')).ends


@pytest.mark.parametrize(
    ("kind", "typed", "says"),
    [
        ("regex", "a(?=b)", "(?"),
        ("regex", r"\p{L}", "\\p"),
        ("regex", "(a", "without an end"),
        ("lark", "%import common.INT\nstart: INT", "%import"),
        ("lark", 'start: "a"\n%ignore " "', "%ignore"),
        ("lark", "start: missing", "not defined"),
        ("gbnf", 'a ::= "b"', "no rule root"),
        ("words", "dog", "Nothing of this kind"),
    ],
)
def test_what_is_not_read_is_said(kind, typed, says):
    with pytest.raises(Unread, match=re.escape(says)):
        Network(grammar_of(kind, typed))


def test_a_rule_that_calls_itself_has_no_automaton():
    with pytest.raises(Unread, match="calls itself"):
        AutomatonGraph(grammar_of(*MORE[0]))


def test_a_text_is_followed_token_by_token():
    places = Places("regex", "dé?j[aà]|dab")
    standing = places.after(places.start(), b"d\xc3")
    assert standing.text == "d" and standing.rest == b"\xc3"
    standing = places.after(standing, b"\xa9j")
    place, state = places.record(standing, 7)
    assert place == ConstraintPlace(7, [[4, 8]], [[0, 12]], False)
    assert type(state) is AutomatonState and places.after(standing, b"x") is None
    assert [event.number for event in places.edges(3)] == list(range(len(places.graph.edges)))


def test_a_lane_records_the_places_of_what_it_commits(tiny_model):
    parameters = {"constraint": "regex", "constraint_text": "a{3}b{2}", "temperature": 2.0}
    trace = Lane("sample", [5], {"target": tiny_model("llama")}, parameters, 0, Limits(9)).run()
    assert trace.steps[0].of(AutomatonEdge) and trace.steps[0].of(AutomatonState)
    places = [place for step in trace.steps for place in step.of(ConstraintPlace)]
    text = b"".join(trace.vocabulary[token] for token in trace.output())
    assert text.startswith(b"aaabb") and places[-1].may_end
