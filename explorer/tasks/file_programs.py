"""Toy programs that open, read, write and close files. A checker finds their flaws: uses of files that are
not open. An imperfect auditor has put a label before most flawed lines.

Not in `TASKS`, since a complete program may still be flawed.
"""

import random

LABEL = "<flaw>"
FILES = "abcdef"
READ, WRITE, OPEN, CLOSE = "read", "write", "open", "close"
CARELESS = {READ: 0.1, WRITE: 0.8}  # probability of using a closed file without opening it
CLOSES = 0.12  # probability of closing a file after a use
MISSED = 0.1  # share of flaws without a label
ASKED = "Task: {}\nProgram:\n"


def make_task(rng: random.Random) -> list[str]:
    """Three to five uses of two or three files, such as `read a`."""
    files = rng.sample(FILES, rng.randint(2, 3))
    return [f"{rng.choice((READ, WRITE))} {rng.choice(files)}" for _ in range(rng.randint(3, 5))]


def prompt_of(task: list[str]) -> str:
    """The prompt of a program."""
    return ASKED.format(", ".join(task))


def make_program(rng: random.Random, task: list[str]) -> str:
    """A program for the task as a careless person writes it, with the auditor's labels."""
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
    """The numbers of the lines, from 0, that use a file that is not open."""
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
    """Whether a program has exactly the requested uses in order, and only opens and closes besides."""
    lines = lines_of(program)
    uses = [line for line in lines if line.split()[0] in (READ, WRITE)]
    return uses == task and all(
        len(line.split()) == 2 and line.split()[0] in (READ, WRITE, OPEN, CLOSE) for line in lines
    )
