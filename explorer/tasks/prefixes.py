"""Decides exactly whether the beginning of an answer can still become a right one, for the tasks in `SCORED`.

Assumes numbers without leading zeros.
"""

import re
from functools import lru_cache

from decoders.refusal import Refusal
from explorer.tasks.arithmetic import OPERATIONS, STEP, true_step
from explorer.tasks.problem import Problem

ONE_LINE = ("sum", "difference", "reverse", "sort", "count", "replace", "translate", "facts")
ONE_WAY = ("column_sum", "chain")  # every line has one right form
SCORED = (*ONE_LINE, *ONE_WAY, "word_problem", "countdown")
WITH_STEPS = (*ONE_WAY, "word_problem", "countdown")  # their grades have steps, one per line
PARTIAL = re.compile(r"(\d+)(?:([+*-])(?:(\d+)(?:=(\d*))?)?)?")


def possible(problem: Problem, prefix: str) -> bool:
    """Whether some text that begins with `prefix` is a right answer. Raises ValueError for other tasks."""
    if problem.task not in SCORED:
        raise Refusal(f"There is no such rule for the task {problem.task!r}; only for {', '.join(SCORED)}.")
    begun = prefix.lstrip()
    if problem.task == "word_problem":
        return possible_word_problem(problem, begun)
    if problem.task == "countdown":
        ways = right_ways(tuple(sorted(problem.facts["numbers"])), problem.facts["goal"])
        return any(follows(begun, way) for way in ways)
    return follows(begun, problem.answer.strip())


def follows(begun: str, answer: str) -> bool:
    """Whether a text is a prefix of `answer`, ignoring blanks around lines, or contains all its lines."""
    given, wanted = begun.split("\n"), answer.split("\n")
    whole = [line.strip() for line in given[:-1] if line.strip()]
    if whole[: len(wanted)] != wanted[: len(whole)]:
        return False
    if len(whole) >= len(wanted):
        return True
    last = wanted[len(whole)]
    return last.startswith(given[-1].lstrip()) or last == given[-1].strip()


def possible_word_problem(problem: Problem, begun: str) -> bool:
    """Correct steps may occur in any order and number; the answer must be right."""
    wanted = f"answer {problem.facts['answer']}"
    *whole, last = begun.split("\n")
    for line in filter(None, map(str.strip, whole)):
        if line.startswith("answer"):
            return line == wanted
        if not true_step(line):
            return False
    last = last.lstrip()
    return wanted.startswith(last) or last.strip() == wanted or begins_a_step(last.rstrip())


def begins_a_step(text: str) -> bool:
    """Whether a text can be completed to a correct equation: `12+6=1` yes, `12+6=2` no."""
    match = PARTIAL.fullmatch(text)
    if match is None:
        return False
    a, sign, b, result = match.groups()
    if b is None:
        return True
    if sign == "-" and int(a) < int(b):
        return False
    return result is None or str(OPERATIONS[sign](int(a), int(b))).startswith(result)


@lru_cache(maxsize=4096)
def right_ways(numbers: tuple[int, ...], goal: int) -> tuple[str, ...]:
    """All right answers of countdown: every number once, each step an equation of two remaining numbers."""
    if len(numbers) == 1:
        return ("",) if numbers[0] == goal else ()
    result = set()
    for i, a in enumerate(numbers):
        for j, b in enumerate(numbers):
            if i == j:
                continue
            rest = tuple(n for k, n in enumerate(numbers) if k not in (i, j))
            for sign, operation in OPERATIONS.items():
                value = operation(a, b)
                line = f"{a}{sign}{b}={value}"
                if STEP.fullmatch(line):
                    ways = right_ways(tuple(sorted((*rest, value))), goal)
                    result |= {f"{line}\n{way}" if way else line for way in ways}
    return tuple(sorted(result))
