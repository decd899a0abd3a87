"""Programs and their machine code: both compute the same; what does not check is found."""

import random

import pytest

from explorer.experiments.models.stack_machine import (
    checks,
    executed,
    fields_of,
    make_program,
    python_of,
    records,
)
from explorer.experiments.small_trainings.decompiled_programs import parts, ran

POINT = ["class", "Point", "x", ":", "int", "y", ":", "int"]
PERSON = ["class", "Person", "name", ":", "text", "age", ":", "int"]
RNG = random.Random(0)
PROGRAMS = [make_program(RNG, 16) for _ in range(60)]


def test_machine_and_python_compute_the_same():
    for one in PROGRAMS:
        fields = fields_of(one.types)
        for values in records(RNG, list(fields.values()), 3):
            given = {"p": dict(zip(fields, values, strict=True))}
            assert executed(one.machine, values) == eval(python_of(one.code), given)


def test_every_made_program_checks_and_reads_all_fields():
    for one in PROGRAMS:
        assert checks(one.types, one.code) and set(fields_of(one.types)) <= set(one.code)


@pytest.mark.parametrize(
    "types, code, good",
    [
        (POINT, "def Point -> int : ( x + y )", True),
        (POINT, "def Size -> int : ( x + y )", False),  # another record
        (POINT, "def Point -> int : ( x + z )", False),  # no such field
        (POINT, "def Point -> text : ( x + y )", False),  # another type
        (POINT, "def Point -> int : ( x + y", False),
        (PERSON, "def Person -> int : ( name + age )", False),
        (PERSON, "def Person -> int : ( len ( name ) + age )", True),
        (PERSON, "def Person -> text : name * name", False),
        (PERSON, "def Person -> bool : len ( age ) < age", False),
        (["class", "Point", "x", ":", "int", "x", ":", "int"], "def Point -> int : x", False),
    ],
)
def test_what_does_not_check_is_found(types, code, good):
    assert checks(types, code.split()) == good


def test_an_answer_is_parted_in_either_order():
    code = ["def", "Point", "->", "int", ":", "x"]
    assert parts([*POINT, *code]) == parts([*code, *POINT]) == (POINT, code)
    assert parts(POINT) == (POINT, [])


def test_written_programs_run_in_the_sandbox():
    some = [one for one in PROGRAMS if "-" in one.code and one.types[1] == "Point"][:1] or PROGRAMS[:1]
    (one,) = some
    wrong = [word if word not in "+-*" else "<" for word in one.code]
    (types, code) = one.types, one.code
    assert ran([one] * 3, [(types, code), (types, wrong), (types, ["def"])]) == [True, False, False]
