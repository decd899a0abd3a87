"""Toy programs with files: the checker by hand, and what careless people write and auditors label."""

import random

import pytest

from explorer.tasks.file_programs import LABEL, does, flaws, make_program, make_task, prompt_of


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("open a\nread a\nclose a\n", []),
        ("read a\n", [0]),
        ("open a\nwrite b\nclose a\nread a\n", [1, 3]),
        (f"{LABEL}write a\nopen a\nwrite a\n", [0]),
        ("open a\nclose a\nopen a\nread a\n", []),
        ("", []),
    ],
)
def test_the_checker_finds_uses_of_files_that_are_not_open(program, lines):
    assert flaws(program) == lines


def test_programs_do_their_task_and_most_flaws_have_a_label():
    rng, flawed, labelled = random.Random(0), 0, 0
    for _ in range(500):
        task = make_task(rng)
        program = make_program(rng, task)
        assert does(program, task) and prompt_of(task) == f"Task: {', '.join(task)}\nProgram:\n"
        assert program.count(LABEL) <= len(flaws(program))  # a label is always right
        rows = program.splitlines()
        assert all(at in flaws(program) for at, line in enumerate(rows) if line.startswith(LABEL))
        flawed, labelled = flawed + len(flaws(program)), labelled + program.count(LABEL)
    assert 0.85 < labelled / flawed < 0.95


def test_a_program_that_does_something_else_does_not_do_its_task():
    assert does("open a\nread a\n", ["read a"]) and does(f"{LABEL}read a\n", ["read a"])
    assert not does("open a\nread b\n", ["read a"]) and not does("open a\nread a\nrun\n", ["read a"])
