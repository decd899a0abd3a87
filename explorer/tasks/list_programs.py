"""Small list programs: find up to five operations that turn each example's input into its output.

The interpreter runs one operation per line on lists of small integers; hidden examples are checked, too.
"""

import random
import re
from collections.abc import Callable

from explorer.tasks.problem import Grade, Problem, Task

LARGEST = 999  # a program with a larger value is wrong
OPERATIONS: dict[str, Callable[[list[int], int], list[int]]] = {
    "reverse": lambda xs, k: xs[::-1],
    "sort": lambda xs, k: sorted(xs),
    "unique": lambda xs, k: list(dict.fromkeys(xs)),
    "add": lambda xs, k: [x + k for x in xs],
    "times": lambda xs, k: [x * k for x in xs],
    "above": lambda xs, k: [x for x in xs if x > k],
    "below": lambda xs, k: [x for x in xs if x < k],
    "take": lambda xs, k: xs[:k],
    "drop": lambda xs, k: xs[k:],
    "even": lambda xs, k: [x for x in xs if x % 2 == 0],
    "odd": lambda xs, k: [x for x in xs if x % 2],
    "double": lambda xs, k: [x for x in xs for _ in range(2)],
    "total": lambda xs, k: [sum(xs)],
    "largest": lambda xs, k: [max(xs)] if xs else [],
    "smallest": lambda xs, k: [min(xs)] if xs else [],
}
WITH_NUMBER = {
    "add": (1, 5),
    "times": (2, 3),
    "above": (1, 7),
    "below": (3, 9),
    "take": (1, 3),
    "drop": (1, 2),
}
LINE = re.compile(r"([a-z]+)(?: (\d))?")
SHOWN, HIDDEN = 3, 3


def run(program: list[str], xs: list[int]) -> list[int] | None:
    """The output of a program for a list; None if a line is not an operation or a value grows too large."""
    for line in program:
        match = LINE.fullmatch(line)
        if not match or match[1] not in OPERATIONS or (match[2] is not None) != (match[1] in WITH_NUMBER):
            return None
        xs = OPERATIONS[match[1]](xs, int(match[2] or 0))
        if len(xs) > 40 or any(x > LARGEST for x in xs):
            return None
    return xs


def random_program(rng: random.Random) -> list[str]:
    """One to three operations, occasionally up to five."""
    count = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
    names = [rng.choice(list(OPERATIONS)) for _ in range(count)]
    return [f"{n} {rng.randint(*WITH_NUMBER[n])}" if n in WITH_NUMBER else n for n in names]


def make(rng: random.Random) -> Problem:
    """Three examples, then the program. Programs that change nothing or empty every list are left out."""
    while True:
        program = random_program(rng)
        inputs = [[rng.randint(0, 9) for _ in range(rng.randint(3, 6))] for _ in range(SHOWN + HIDDEN)]
        outputs = [run(program, xs) for xs in inputs]
        if None in outputs or not any(outputs) or outputs == inputs:
            continue
        examples = list(zip(inputs, outputs, strict=True))
        shown = [
            f"{' '.join(map(str, xs))} -> {' '.join(map(str, ys))}".rstrip() for xs, ys in examples[:SHOWN]
        ]
        prompt = "\n".join(["program for", *shown, "is", ""])
        return Problem("list_program", prompt, "\n".join(program), {"examples": examples})


def lines_of(text: str) -> list[str]:
    """The lines of a written program, up to the first blank one."""
    return [line.strip() for line in text.strip("\n").split("\n\n")[0].split("\n")]


def check(problem: Problem, text: str) -> Grade:
    """Runs the written program on the shown and the hidden examples."""
    program = lines_of(text)
    for count, (xs, ys) in enumerate(problem.facts["examples"]):
        result = run(program, xs)
        if result is None:
            return Grade(False, "A line is not an operation, or a value grows too large.")
        if result != ys:
            which = "a shown example" if count < SHOWN else "a hidden example"
            return Grade(False, f"It gives {result} for {xs}, {which} that should give {ys}.")
    return Grade(True, "It is right on all examples, shown and hidden.")


TASKS = (Task("list_program", "A small program from input and output lists.", make, check),)
