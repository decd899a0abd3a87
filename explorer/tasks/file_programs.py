"""Toy programs that open, read, write and close files, with a flaw that a checker finds: a file is used that
is not open. An auditor has put a label in front of most flawed lines; some it has missed.

It is no task of `TASKS`, since a program may be finished and still be flawed. Knows plain text.
"""

import random

LABEL = "<flaw>"
FILES = "abcdef"
READ, WRITE, OPEN, CLOSE = "read", "write", "open", "close"
CARELESS = {READ: 0.1, WRITE: 0.8}  # how often a file that is not open is used without opening it
CLOSES = 0.12  # how often a file is closed after a use
MISSED = 0.1  # share of the flaws that have no label
ASKED = "Task: {}\nProgram:\n"


def make_task(rng: random.Random) -> list[str]:
    """Three to five uses of two or three files, such as `read a`."""
    files = rng.sample(FILES, rng.randint(2, 3))
    return [f"{rng.choice((READ, WRITE))} {rng.choice(files)}" for _ in range(rng.randint(3, 5))]


def prompt_of(task: list[str]) -> str:
    """What stands in front of a program."""
    return ASKED.format(", ".join(task))


def make_program(rng: random.Random, task: list[str]) -> str:
    """A program that does the task, as a careless person writes it and an auditor labels it."""
    opened: list[str] = []
    lines = []
    for use in task:
        verb, name = use.split()
        if name in opened:
            lines.append(use)
        elif rng.random() < CARELESS[verb]:
            lines.append(use if rng.random() < MISSED else f"{LABEL}{use}")
        else:
            lines += [f"{OPEN} {name}", use]
            opened.append(name)
        if name in opened and rng.random() < CLOSES:
            lines.append(f"{CLOSE} {name}")
            opened.remove(name)
    return "".join(f"{line}\n" for line in [*lines, *(f"{CLOSE} {name}" for name in opened)])


def lines_of(program: str) -> list[str]:
    """The lines of a program without labels."""
    return [line.strip() for line in program.replace(LABEL, "").splitlines() if line.strip()]


def flaws(program: str) -> list[int]:
    """The lines, from 0 on, that use a file which is not open."""
    opened: set[str] = set()
    result = []
    for at, line in enumerate(lines_of(program)):
        verb, _, name = line.partition(" ")
        if verb == OPEN:
            opened.add(name)
        elif verb == CLOSE:
            opened.discard(name)
        elif verb in (READ, WRITE) and name not in opened:
            result.append(at)
    return result


def does(program: str, task: list[str]) -> bool:
    """Whether a program uses the files as asked, in this order, and has no other kind of line."""
    lines = lines_of(program)
    uses = [line for line in lines if line.split()[0] in (READ, WRITE)]
    return uses == task and all(
        len(line.split()) == 2 and line.split()[0] in (READ, WRITE, OPEN, CLOSE) for line in lines
    )
