"""Whatever is typed for a constraint works, or one sentence says what is wrong; nothing else is raised."""

import json
import random
import time
from contextlib import suppress
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.constraints import xgrammars
from decoders.constraints.constraint import DeadEnd
from decoders.constraints.grammars import Grammar
from decoders.constraints.kinds import constraint_of, vocabulary_of
from decoders.constraints.places.place import Places
from decoders.constraints.places.syntax import Unread
from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.xgrammars import XGrammar
from decoders.models import load

KINDS = ("json_schema", "regex", "lark", "gbnf", "choices")
LETTERS = st.text('{}[]()"\\:,|*+?.^$/=abcé\n 0-9', max_size=60)
WORDS = (
    "start: ",
    "root ::= ",
    '"a"',
    "/[0-9]+/",
    "[a-z]",
    "(",
    ")",
    "|",
    "*",
    "+",
    "{2,900}",
    "\n",
    "foo",
    "é",
)
PIECES = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
KEYS = st.sampled_from(["type", "enum", "properties", "items", "anyOf", "pattern", "$ref", "const"])
LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.text("ab$", max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
TYPED = LETTERS | PIECES | VALUES.map(json.dumps)


@pytest.fixture(scope="module")
def vocabulary():
    model = load("llama-tiny", "cpu")
    return vocabulary_of(model, model.eos)


def works_or_says_why(made, kind, typed, vocabulary):
    """Follows the constraint that an engine makes of a text, or reads the sentence that refuses it."""
    try:
        constraint = made(kind, typed, vocabulary)
    except ConstraintProblem as problem:
        said = str(problem)
        assert said.endswith(".") and "\n" not in said and len(said) < 250
        return
    state, draw = constraint.start(), random.Random(0)
    assert constraint.allowed(state).any() or constraint.may_end(state)
    for _ in range(6):
        allowed = constraint.allowed(state).nonzero()[:, 0].tolist()
        if not allowed:
            return
        try:
            state = constraint.advance(state, draw.choice(allowed))
        except DeadEnd as end:
            assert str(end).endswith(".")
            return
        assert state is not None


@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(KINDS), typed=TYPED)
def test_a_text_is_a_constraint_that_works_or_a_sentence(kind, typed, vocabulary):
    works_or_says_why(Grammar, kind, typed, vocabulary)


@pytest.mark.skipif(find_spec("xgrammar") is None, reason="xgrammar is installed only where it is wanted")
@settings(max_examples=100, deadline=None)
@given(kind=st.sampled_from(xgrammars.KINDS), typed=TYPED)
def test_so_it_is_for_the_second_engine(kind, typed, vocabulary):
    works_or_says_why(XGrammar, kind, typed, vocabulary)


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("lark", 'start: "a" (// {1000000000000000,0})?'),
        ("regex", "((((){4000}){4000}){4000}){4000}"),
        ("lark", "start: r0\n" + "".join(f"r{n}: r{n + 1} r{n + 1}\n" for n in range(40)) + 'r40: "a"'),
        ("lark", 'start: start start start | "a" | '),
        ("choices", "\n".join(f"choice {n}" for n in range(300))),
    ],
)
def test_a_text_is_followed_in_little_time_or_not_at_all(kind, typed, vocabulary):
    """Parts that are repeated for ever without a character, rules that double, texts with many readings."""
    began = time.process_time()
    with suppress(Unread):
        places = Places(kind, typed)
        standing = places.start()
        for _ in range(40):
            standing = standing and places.after(standing, b"a")
    assert time.process_time() - began < 2


def test_half_of_a_character_is_refused_in_a_sentence(vocabulary):
    model = load("llama-tiny", "cpu")
    asked = {"constraint": "words", "constraint_text": "cat\n\ud800"}
    with pytest.raises(ConstraintProblem, match="half of a character"):
        constraint_of(asked, model, model.eos)
