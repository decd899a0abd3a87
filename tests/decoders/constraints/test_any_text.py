"""Whatever is typed for a constraint works, or one sentence says what is wrong; nothing else is raised."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.constraints.constraint import DeadEnd
from decoders.constraints.grammars import Grammar
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.problem import ConstraintProblem
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


@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(KINDS), typed=TYPED)
def test_a_text_is_a_constraint_that_works_or_a_sentence(kind, typed, vocabulary):
    try:
        constraint = Grammar(kind, typed, vocabulary)
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
