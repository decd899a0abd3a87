"""What a task is: problems made from a seed, each with a prompt of fixed form, a right answer and a checker.

The shipped models are trained on these, strategies are compared on them, and rewards are learned from their
checkers.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """`prompt` ends where the answer begins; `answer` is a right answer, with its steps if the task has
    steps; `facts` is what the checker needs.
    """

    task: str
    prompt: str
    answer: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grade:
    """What a checker says of an answer: right or not, and why in a sentence.

    `steps`: for answers with steps, each line up to the last and whether it is right; a wrong answer may have
    right steps.
    """

    right: bool
    reason: str
    steps: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class Task:
    """`make(rng)` gives a problem; `check(problem, text)` grades what a model wrote after its prompt."""

    name: str
    about: str
    make: Callable[[random.Random], Problem]
    check: Callable[[Problem, str], Grade]


def lines(text: str) -> list[str]:
    """The non-empty lines of an answer, stripped."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def same_line(problem: Problem, text: str) -> Grade:
    """For tasks with one right answer: the first line must be it."""
    given = lines(text)
    first = given[0] if given else ""
    wanted = problem.answer.strip()
    if first == wanted:
        return Grade(True, "It is the right answer.")
    return Grade(False, f"The right answer is {wanted!r}, not {first[:60]!r}.")
