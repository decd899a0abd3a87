"""Grammars: what a mask lets through is what the constraint allows, in both engines."""

import json
import random
from importlib.util import find_spec

import jsonschema
import pytest
import torch

from decoders.constraints import xgrammar_worker
from decoders.constraints.constraint import DeadEnd
from decoders.constraints.grammars import Grammar
from decoders.constraints.kinds import constraint_of, vocabulary_of
from decoders.constraints.matchers import Vocabulary, choices_of
from decoders.constraints.places.place import Places
from decoders.constraints.places.syntax import Unread
from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.xgrammars import FORMATS, XGrammar
from decoders.lane import Lane, Limits
from decoders.models import load
from decoders.trace.events import Note

has_xgrammar = pytest.mark.skipif(find_spec("xgrammar") is None, reason="xgrammar is not installed")
ENGINES = [Grammar, pytest.param(XGrammar, marks=has_xgrammar)]
SCHEMAS = [
    {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 17}},
        "required": ["a"],
    },
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 5}, "tags": {"enum": ["x", "y z", None, 4]}},
        "required": ["tags"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
    {"anyOf": [{"const": "yes"}, {"type": "null"}, {"type": "array", "items": {"const": 1}, "maxItems": 2}]},
    {
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}},
        "$ref": "#/$defs/tree",
    },
    {"type": "string", "pattern": "^[a-c]{2,3}$"},
]
HEAVY = '{"type": "string", "pattern": "^(a|ab|abc){1,3000}$", "maxLength": 9}'  # for xgrammar
LIST = 'root ::= item ("," item)*\nitem ::= [0-9] | "(" root ")"'


@pytest.fixture(scope="module")
def model():
    return load("llama-tiny", "cpu")


@pytest.fixture(scope="module")
def vocabulary(model):
    return vocabulary_of(model, model.eos)


def readable(token: bytes) -> bool:
    """Whole characters; xgrammar lets control characters into strings, which JSON does not allow."""
    return token.isascii() and token.decode().isprintable()


def walk(constraint, vocabulary, seed: int, longest: int = 400) -> str | None:
    """A text of random allowed tokens, shorter ones oftener as it gets longer; None if it did not end."""
    draw, state, text = random.Random(seed), constraint.start(), b""
    for length in range(longest):
        if constraint.may_end(state) and draw.random() < 0.3 + length / 50:
            return text.decode("utf-8", "replace")
        allowed = constraint.allowed(state).nonzero()[:, 0].tolist()
        allowed = [t for t in allowed if readable(vocabulary.tokens[t])]
        if not allowed:
            return text.decode("utf-8", "replace") if constraint.may_end(state) else None
        if length > 10:  # closing brackets and quotes, where they may stand
            allowed = [t for t in allowed if vocabulary.tokens[t] in (b'"', b"]", b"}")] or allowed
        token = draw.choice(allowed)
        state, text = constraint.advance(state, token), text + vocabulary.tokens[token]
    return None


def accepts(constraint, vocabulary, text: str) -> bool:
    """Whether the tokens of a text pass the mask one by one and may end there."""
    state = constraint.start()
    for token in vocabulary.cut(text):
        if not constraint.allowed(state)[token]:
            return False
        state = constraint.advance(state, token)
    return constraint.may_end(state)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_every_walk_along_the_mask_of_a_schema_validates(engine, schema, vocabulary):
    constraint = engine("json_schema", json.dumps(schema), vocabulary)
    texts = [text for seed in range(16) if (text := walk(constraint, vocabulary, seed)) is not None]
    assert len(texts) > 4
    for text in texts:
        jsonschema.validate(json.loads(text), schema)


@pytest.mark.parametrize("engine", ENGINES)
def test_instances_pass_as_they_should(engine, vocabulary):
    constraint = engine("json_schema", json.dumps(SCHEMAS[1]), vocabulary)
    assert accepts(constraint, vocabulary, '{"name":"Max","tags":"y z"}')
    assert accepts(constraint, vocabulary, '{"tags":null}')
    assert not accepts(constraint, vocabulary, '{"name":"Max"}')
    assert not accepts(constraint, vocabulary, '{"tags":5}')
    assert not accepts(constraint, vocabulary, '{"tags":4,"more":1}')
    spaced = engine("json_schema", json.dumps(SCHEMAS[1]), vocabulary, "spaced")
    assert accepts(spaced, vocabulary, '{"name": "Max", "tags": 4}')
    assert not accepts(spaced, vocabulary, '{"name":"Max","tags":4}')
    assert accepts(
        engine("json_schema", json.dumps(SCHEMAS[1]), vocabulary, "any"), vocabulary, '{ "tags" :4}'
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_language_in_other_spellings(engine, vocabulary):
    choices = engine("choices", '" soup"| a dog |"the park"', vocabulary)
    assert [accepts(choices, vocabulary, text) for text in (" soup", "a dog", "the park", "soup")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert choices_of("one\n\ntwo\none") == ["one", "two"]
    listed = engine("gbnf", LIST, vocabulary)
    assert accepts(listed, vocabulary, "1,(2,(3)),4") and not accepts(listed, vocabulary, "1,(2")
    assert accepts(engine("regex", "[a-c]+é?", vocabulary), vocabulary, "abcé")


def test_a_lark_grammar_and_the_tokens_that_it_forces(vocabulary):
    constraint = Grammar("lark", 'start: "answer: " NUMBER\nNUMBER: /[0-9]{2}/', vocabulary)
    forced = constraint.forced(constraint.start())
    assert b"".join(vocabulary.tokens[t] for t in forced) in (b"answer:", b"answer: ")
    state = constraint.start()
    for token in forced:
        state = constraint.advance(state, token)
    assert constraint.allowed(constraint.start()).sum() >= 1 and not constraint.may_end(state)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_stays_as_it_is_when_others_go_on_from_it(engine, vocabulary):
    constraint = engine("regex", "(ab|cd)+", vocabulary)
    start, before = constraint.start(), constraint.allowed(constraint.start())
    a, c = vocabulary.cut("a")[0], vocabulary.cut("c")[0]
    left, right = constraint.advance(start, a), constraint.advance(start, c)
    assert torch.equal(constraint.allowed(start), before)
    assert not torch.equal(constraint.allowed(left), constraint.allowed(right))
    assert (
        constraint.advance(left, a) is None and constraint.advance(left, vocabulary.cut("b")[0]) is not None
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_special_tokens_are_no_text(engine, model, vocabulary):
    allowed = engine("regex", ".*", vocabulary).allowed
    constraint = engine("regex", ".*", vocabulary)
    allowed = constraint.allowed(constraint.start())
    assert not any(allowed[token] for token in model.bytes_of.special)


@pytest.mark.parametrize(
    ("kind", "typed", "says", "place"),
    [
        ("json_schema", '{"type" "object"}', "is not JSON: expecting ':' delimiter", (1, 9)),
        ("json_schema", '{"not": {"type": "string"}}', 'Unimplemented keys: ["not"]', None),
        ("json_schema", '{"type": "foo"}', "Invalid type: foo", None),
        ("json_schema", "[1]", "must be an object", None),
        ("json_schema", '{"enum": []}', "", None),
        ("regex", "a(b", "unclosed group", (1, 2)),
        ("regex", "(?=a)b", "look-around", None),
        ("lark", "start: foo", 'unknown name: "foo"', (1, 8)),
        ("gbnf", "root = (", "Expected ::=", (1, None)),
        ("gbnf", "root ::= foo", "Rule 'foo' not found", None),
        ("choices", " \n", "empty", None),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence_with_its_place(kind, typed, says, place, vocabulary):
    with pytest.raises(ConstraintProblem) as caught:
        Grammar(kind, typed, vocabulary)
    sentence = str(caught.value)
    assert says in sentence and sentence.endswith(".") and "\n" not in sentence and len(sentence) < 250
    if place:
        assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("kind", "typed", "says"),
    [
        (
            "json_schema",
            '{"oneOf": [{"type": "integer"}, {"type": "number"}]}',
            "; use anyOf, or set",
        ),
        ("json_schema", '{"not": {"type": "string"}}', "; remove it, or set constraint_engine to xgrammar"),
        (
            "json_schema",
            '{"type": "string", "format": "password"}',
            "; remove it, or set constraint_engine",
        ),
        ("gbnf", 'root ::= ("a"*)* "b"', "; correct it, or set constraint_engine to xgrammar"),
        ("regex", "(?=a)b", "; write it without."),
    ],
)
def test_a_complaint_says_a_way_out_and_names_no_option_that_is_not_here(kind, typed, says, vocabulary):
    with pytest.raises(ConstraintProblem) as caught:
        Grammar(kind, typed, vocabulary)
    assert says in str(caught.value) and "coerce_one_of" not in str(caught.value)


@has_xgrammar
def test_the_other_engine_takes_what_a_complaint_says_it_takes(vocabulary):
    for kind, typed in (
        ("gbnf", 'root ::= ("a"*)* "b"'),
        ("json_schema", '{"type": "string", "format": "password"}'),
    ):
        assert XGrammar(kind, typed, vocabulary).first.allowed.any()


@has_xgrammar
def test_what_xgrammar_leaves_unchecked_is_a_note(vocabulary):
    schema = '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}'
    assert (
        "xgrammar does not check uniqueItems; a text may break it."
        in XGrammar("json_schema", schema, vocabulary).notes
    )
    assert XGrammar("json_schema", '{"enum": ["if", "not"]}', vocabulary).notes == []


@has_xgrammar
@pytest.mark.parametrize("named", ["password", "regex", "idn-email", *FORMATS])
def test_a_format_is_checked_by_xgrammar_or_a_note_names_it(named, vocabulary):
    constraint = XGrammar("json_schema", json.dumps({"type": "string", "format": named}), vocabulary)
    checked = not accepts(constraint, vocabulary, '" }{%~"')
    assert checked == (named in FORMATS)
    sentence = f"xgrammar does not check the format {named}; a text may break it."
    assert constraint.notes == ([] if checked else [sentence])


@has_xgrammar
def test_a_warning_of_xgrammar_is_a_note_of_the_lane(model):
    asked = {
        "constraint": "json_schema",
        "constraint_text": '{"oneOf": [{"type": "integer"}, {"type": "number"}]}',
        "constraint_engine": "xgrammar",
    }
    lane = Lane("greedy", model.encode("1"), {"target": model}, asked, 0, Limits(1))
    said = [note.text for step in lane.run().steps for note in step.of(Note)]
    assert any(s.startswith("xgrammar warns: oneOf") and "anyOf semantics" in s for s in said)


@has_xgrammar
def test_choices_with_control_characters_are_choices_of_xgrammar_too():
    bytewise = Vocabulary(
        [bytes([byte]) for byte in range(256)], [255], [255], lambda text: list(text.encode())
    )
    assert accepts(XGrammar("choices", "a\x00b|c\td", bytewise), bytewise, "a\x00b")


@has_xgrammar
def test_a_grammar_of_xgrammar_may_compute_for_two_seconds_whatever_the_clock_says(vocabulary):
    worker = XGrammar("regex", "a", vocabulary).worker
    clock, worker.seconds = worker.seconds, 600.0
    with pytest.raises(ConstraintProblem, match="took more than 2 seconds for it; make it smaller"):
        XGrammar("json_schema", HEAVY, vocabulary)
    worker.seconds = clock


@has_xgrammar
def test_a_slow_start_of_xgrammar_is_named_as_one(vocabulary, monkeypatch):
    monkeypatch.setattr(xgrammar_worker, "CLOCK", 0)
    one = Vocabulary(vocabulary.tokens, vocabulary.eos, vocabulary.special, vocabulary.cut)
    with pytest.raises(ConstraintProblem, match="took more than 60 seconds to start; try again"):
        XGrammar("regex", "a", one)


def test_a_grammar_too_large_to_follow_is_not_parsed_in_the_apps_own_process():
    with pytest.raises(Unread, match="too large to follow"):
        Places("gbnf", 'root ::= "a"\n' + "# comment\n" * 100_000)


@has_xgrammar
def test_xgrammar_says_what_it_cannot_do_and_a_hang_costs_one_grammar(vocabulary):
    with pytest.raises(ConstraintProblem, match="xgrammar has no Lark grammar; choose the engine llguidance"):
        XGrammar("lark", 'start: "a"', vocabulary)
    with pytest.raises(ConstraintProblem, match="parenthesis is not closed"):
        XGrammar("regex", "a(b", vocabulary)
    hanging = XGrammar("regex", "a+", vocabulary)
    state = hanging.start()
    hanging.worker.close()
    hanging.worker.lives += 1  # as after a hang: its process is gone
    with pytest.raises(DeadEnd, match="choose the engine llguidance"):
        hanging.advance(state, vocabulary.cut("a")[0])
    assert XGrammar("regex", "a+", vocabulary).allowed(state)[vocabulary.cut("a")[0]]


def test_an_endless_grammar_ends_in_a_sentence(vocabulary):
    constraint = Grammar("lark", 'start: "\\n" start', vocabulary)  # no text is ever whole
    state = constraint.start()
    with pytest.raises(DeadEnd, match="llguidance gave up here"):
        for _ in range(50):
            state = constraint.advance(state, int(constraint.allowed(state).nonzero()[0]))


def test_parameters_are_read_and_misfits_refused(model):
    asked = {"constraint_white_space": "compact", "constraint_engine": "llguidance", "constraint_text": " "}
    assert constraint_of({"constraint": "none"}, model, model.eos) is None
    with pytest.raises(ConstraintProblem, match="The regular expression is empty"):
        constraint_of({"constraint": "regex"} | asked, model, model.eos)
    with pytest.raises(ConstraintProblem, match="token_healing"):
        constraint_of({"constraint": "regex", "token_healing": True} | asked, model, model.eos)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tokenizer_that_begins_texts_with_a_space_spells_them_without_one(engine):
    pieces = Vocabulary([b"", b"y", b"e", b"es", b" y", b" es"], [0], [0], lambda text: [5])
    assert walk(engine("regex", "yes", pieces), pieces, 0) == "yes"
    words = Vocabulary([b"", b" yes", b" no"], [0], [0], lambda text: [])
    assert walk(engine("regex", " yes| no", words), words, 0) in (" yes", " no")
    with pytest.raises(ConstraintProblem, match="since every token here begins with a space; let it begin"):
        engine("regex", "yes|no", words)
