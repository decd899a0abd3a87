"""Arithmetic: direct, with a scratchpad, as chains, as word problems, and countdown. Every step can be
checked.
"""

import itertools
import random
import re

from explorer.tasks.problem import Grade, Problem, Task, lines, same_line

OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
STEP = re.compile(r"(\d+)([+*-])(\d+)=(\d+)")
NAMES = ("Tom", "Lily", "Ben", "Mia", "Sam", "Anna", "Max", "Lucy", "Tim", "Sara")
THINGS = ("apples", "books", "balls", "cookies", "flowers", "shells", "coins", "toys", "stones", "cards")
MORE = (
    "{n} finds {k} more.",
    "{n} gets {k} more.",
    "A friend gives {n} {k} more.",
    "{n} buys {k} more.",
    "Then {n} picks up {k}.",
)
FEWER = ("{n} loses {k}.", "{n} gives away {k}.", "{n} breaks {k}.", "A friend takes {k}.", "{n} sells {k}.")
TIMES = ("Then {n} has {k} times as many.", "By magic, they become {k} times as many.")


def number(rng: random.Random, digits: int) -> int:
    """A number with exactly `digits` digits."""
    return rng.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def make_sum(rng: random.Random) -> Problem:
    """`347+85=` -> `432`: one to four digits."""
    a, b = number(rng, rng.randint(1, 4)), number(rng, rng.randint(1, 4))
    return Problem("sum", f"{a}+{b}=", f"{a + b}")


def make_difference(rng: random.Random) -> Problem:
    """`432-85=` -> `347`: the result is never negative."""
    a, b = sorted((number(rng, rng.randint(1, 4)), number(rng, rng.randint(1, 4))), reverse=True)
    return Problem("difference", f"{a}-{b}=", f"{a - b}")


def column_lines(a: int, b: int) -> list[str]:
    """Addition column by column from the right: `7+5+0=12` for each, the carry last."""
    lines, carry = [], 0
    for x, y in itertools.zip_longest(str(a)[::-1], str(b)[::-1], fillvalue="0"):
        total = int(x) + int(y) + carry
        lines.append(f"{x}+{y}+{carry}={total}")
        carry = total // 10
    return lines


def make_column_sum(rng: random.Random) -> Problem:
    """Addition of two to four digits with a scratchpad: one line per column, the answer last."""
    a, b = number(rng, rng.randint(2, 4)), number(rng, rng.randint(2, 4))
    answer = "\n".join([*column_lines(a, b), f"answer {a + b}"])
    return Problem("column_sum", f"Add {a} and {b} by columns:\n", answer)


def make_chain(rng: random.Random) -> Problem:
    """`start 3; +4; *2` -> `+4 -> 7`, `*2 -> 14`, `answer 14`."""
    value = start = rng.randint(1, 9)
    wanted, operations = [], []
    for _ in range(rng.randint(2, 5)):
        sign = rng.choice("++--*" if value < 50 else "+--")
        k = rng.randint(2, 3) if sign == "*" else rng.randint(1, min(9, max(value, 1)))
        if sign == "-" and k > value:
            sign = "+"
        value = OPERATIONS[sign](value, k)
        operations.append(f"{sign}{k}")
        wanted.append(f"{sign}{k} -> {value}")
    wanted.append(f"answer {value}")
    return Problem("chain", f"start {start}; {'; '.join(operations)}\n", "\n".join(wanted))


def check_lines(problem: Problem, text: str) -> Grade:
    """Grades problems with a single right solution, line by line."""
    wanted, given = lines(problem.answer), lines(text)
    steps = tuple((line, line == right) for line, right in zip(given, wanted, strict=False))
    if given[: len(wanted)] == wanted:
        return Grade(True, "Every step is right.", steps[:-1])
    wrong = next((line for line, ok in steps if not ok), "")
    return Grade(False, f"The line {wrong[:60]!r} is wrong." if wrong else "Steps are missing.", steps)


def make_word_problem(rng: random.Random) -> Problem:
    """A story of one to four steps; its worked solution may add the numbers in another order."""
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    value = start = rng.randint(2, 20)
    sentences, changes = [f"{name} has {start} {thing}."], []
    for _ in range(rng.randint(1, 4)):
        sign = rng.choice("++--*") if value < 30 else "-"
        k = rng.randint(2, 3) if sign == "*" else rng.randint(1, 9)
        if sign == "-" and k >= value:
            sign = "+"
        words = {"+": MORE, "-": FEWER, "*": TIMES}[sign]
        sentences.append(rng.choice(words).format(n=name, k=k))
        changes.append((sign, k))
        value = OPERATIONS[sign](value, k)
    prompt = f"{' '.join(sentences)} How many {thing} does {name} have?\n"
    worked = [*worked_path(start, changes, rng), f"answer {value}"]
    return Problem("word_problem", prompt, "\n".join(worked), {"answer": value})


def worked_path(start: int, changes: list[tuple[str, int]], rng: random.Random) -> list[str]:
    """All steps, such as `12+6=18`: in order, or with two additions combined first, which is also right."""
    steps, value, at = [], start, 0
    while at < len(changes):
        (sign, k), then = changes[at], changes[at + 1 : at + 2]
        if sign == "+" and then and then[0][0] == "+" and rng.random() < 0.5:
            other = then[0][1]
            steps += [f"{k}+{other}={k + other}", f"{value}+{k + other}={value + k + other}"]
            value, at = value + k + other, at + 2
            continue
        steps.append(f"{value}{sign}{k}={OPERATIONS[sign](value, k)}")
        value, at = OPERATIONS[sign](value, k), at + 1
    return steps


def true_step(line: str) -> bool:
    """Whether a line is a correct equation such as `12+6=18`."""
    match = STEP.fullmatch(line)
    return bool(match) and OPERATIONS[match[2]](int(match[1]), int(match[3])) == int(match[4])


def check_word_problem(problem: Problem, text: str) -> Grade:
    """Right if the line that begins with `answer` is right and all lines before it are correct equations."""
    given = lines(text)
    end = next((i for i, line in enumerate(given) if line.startswith("answer")), None)
    steps = tuple((line, true_step(line)) for line in given[:end])
    if end is None:
        return Grade(False, "There is no line that begins with 'answer'.", steps)
    wanted = f"answer {problem.facts['answer']}"
    if given[end] != wanted:
        return Grade(False, f"The answer is {problem.facts['answer']}, not {given[end][7:40]!r}.", steps)
    if not all(ok for _, ok in steps):
        return Grade(False, "The answer is right, but a step is not.", steps)
    return Grade(True, "The answer and all steps are right.", steps)


def make_countdown(rng: random.Random) -> Problem:
    """Numbers and a goal: `Make 24 from 3 5 9.` -> `3*5=15`, `15+9=24`. Every number is used once."""
    while True:
        numbers = [rng.randint(1, 9) for _ in range(rng.choice((3, 3, 4)))]
        left, steps = rng.sample(numbers, len(numbers)), []
        while len(left) > 1:
            a, b = left.pop(rng.randrange(len(left))), left.pop(rng.randrange(len(left)))
            sign = rng.choice("++-*")
            a, b = max(a, b), min(a, b)
            left.append(OPERATIONS[sign](a, b))
            steps.append(f"{a}{sign}{b}={left[-1]}")
        if 1 <= left[0] <= 99:
            break
    prompt = f"Make {left[0]} from {' '.join(map(str, numbers))}.\n"
    return Problem("countdown", prompt, "\n".join(steps), {"numbers": numbers, "goal": left[0]})


def check_countdown(problem: Problem, text: str) -> Grade:
    """Any solution is right that uses every number once and ends at the goal."""
    left, steps = list(problem.facts["numbers"]), []
    for line in lines(text)[: len(left) - 1]:
        match = STEP.fullmatch(line)
        ok = bool(match) and true_step(line)
        for part in (1, 3):
            if ok and int(match[part]) in left:
                left.remove(int(match[part]))
            else:
                ok = False
        steps.append((line, ok))
        if not ok:
            return Grade(
                False,
                f"The line {line[:60]!r} is not a correct equation of numbers that are left.",
                tuple(steps),
            )
        left.append(int(match[4]))
    if left == [problem.facts["goal"]]:
        return Grade(True, "Every number is used once, and the goal is reached.", tuple(steps))
    return Grade(False, f"The goal {problem.facts['goal']} is not reached.", tuple(steps))


TASKS = (
    Task("sum", "Addition of one to four digits, in one step.", make_sum, same_line),
    Task("difference", "Subtraction of one to four digits, in one step.", make_difference, same_line),
    Task("column_sum", "Addition with a scratchpad, column by column.", make_column_sum, check_lines),
    Task("chain", "A chain of small operations, with the value after each.", make_chain, check_lines),
    Task("word_problem", "A story with numbers, solved in steps.", make_word_problem, check_word_problem),
    Task("countdown", "Reach a goal, using every number once.", make_countdown, check_countdown),
)
