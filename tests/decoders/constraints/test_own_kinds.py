"""What all constraints promise: one check says what the mask says, and odd texts get a sentence or work."""

import random

import pytest

from decoders.constraints.kinds import OWN, constraint_of
from tests.helpers import tiny_models

DECLARED = "class P:\n    name: str\n    age: int\np = P('a', 1)\n"
TYPED = {
    "labels": "sad|happy|so sad",
    "words": "th|sad, a*",
    "required_words": "th|sad, a*",
    "members": DECLARED,
    "regex": "[a-m ]+(th)?",
    "choices": "sad|so sad|the",
}
TEXTS = ("sad, so sad", "the sad man", "x = p.name + p.age", "so sad", "a them")


@pytest.mark.parametrize("kind", TYPED)
def test_a_check_of_one_token_says_what_the_mask_says(kind):
    target = tiny_models.make()
    given = {
        "constraint": kind,
        "constraint_text": TYPED[kind],
        "constraint_engine": "llguidance",
        "constraint_white_space": "compact",
    }
    constraint = constraint_of(given, target, target.eos, b"p")
    for text in TEXTS:
        state = constraint.start()
        for token in target.encode(text):
            allowed = constraint.allowed(state)
            asked = [t for t in range(constraint.vocabulary) if t not in target.eos]
            assert [constraint.accepts(state, t) for t in asked] == allowed[asked].tolist()
            assert not allowed[list(target.eos)].any()
            if (state := constraint.advance(state, token)) is None:
                break


def test_odd_texts_work_or_get_a_sentence():
    target, draw = tiny_models.make(), random.Random(0)
    pieces = [*"ab,|*\n\"'().:= \\é#-_0", "class A", "def f", "self", "    x: A", "Enum", "\x00"]
    refused = 0
    for _ in range(60):
        typed = "".join(draw.choice(pieces) for _ in range(draw.randint(1, 30)))
        for kind in OWN:
            try:
                asked = {"constraint": kind, "constraint_text": typed}
                constraint = constraint_of(asked, target, target.eos, typed.encode() + b"a.")
            except ValueError as problem:
                refused += 1
                assert str(problem).endswith(".") and "\n" not in str(problem)
                continue
            state = constraint.start()
            for _ in range(6):
                allowed = constraint.allowed(state).nonzero()[:, 0].tolist()
                if not allowed:
                    break
                state = constraint.advance(state, draw.choice(allowed))
                assert state is not None
                constraint.may_end(state)
    assert refused
