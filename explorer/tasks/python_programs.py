"""One-line Python functions from a description and two asserts, some thirty templates; hidden calls decide.

Generated code runs in a sandbox.
"""

import random
from collections.abc import Callable

from explorer.tasks import sandbox
from explorer.tasks.problem import Grade, Problem, Task


def numbers(rng: random.Random) -> tuple[list[int]]:
    """A list of three to six digits."""
    return ([rng.randint(0, 9) for _ in range(rng.randint(3, 6))],)


def text(rng: random.Random) -> tuple[str]:
    """A short word."""
    return (rng.choice(("cat", "dog", "bird", "moon", "tree", "banana", "level", "apple", "noon", "river")),)


def words(rng: random.Random) -> tuple[str]:
    """Two to four short words in one text."""
    return (" ".join(text(rng)[0] for _ in range(rng.randint(2, 4))),)


def two(rng: random.Random) -> tuple[int, int]:
    """Two small numbers, the second positive."""
    return rng.randint(0, 20), rng.randint(1, 9)


def item_in(rng: random.Random) -> tuple[list[int], int]:
    """A list and a number that may be in it."""
    return numbers(rng)[0], rng.randint(0, 9)


# (description, parameters, body, generator of arguments); {k} is a small number
Template = tuple[str, str, str, Callable]
TEMPLATES: tuple[Template, ...] = (
    ("add {k} to every item", "xs", "[x + {k} for x in xs]", numbers),
    ("multiply every item by {k}", "xs", "[x * {k} for x in xs]", numbers),
    ("keep the items above {k}", "xs", "[x for x in xs if x > {k}]", numbers),
    ("keep the items below {k}", "xs", "[x for x in xs if x < {k}]", numbers),
    ("keep the even items", "xs", "[x for x in xs if x % 2 == 0]", numbers),
    ("keep the odd items", "xs", "[x for x in xs if x % 2 == 1]", numbers),
    ("reverse the list", "xs", "xs[::-1]", numbers),
    ("sort the list", "xs", "sorted(xs)", numbers),
    ("sort from large to small", "xs", "sorted(xs)[::-1]", numbers),
    ("sum of the items", "xs", "sum(xs)", numbers),
    ("largest item", "xs", "max(xs)", numbers),
    ("smallest item", "xs", "min(xs)", numbers),
    ("number of items", "xs", "len(xs)", numbers),
    ("first item", "xs", "xs[0]", numbers),
    ("last item", "xs", "xs[-1]", numbers),
    ("first {k} items", "xs", "xs[:{k}]", numbers),
    ("all but the first {k} items", "xs", "xs[{k}:]", numbers),
    ("largest minus smallest", "xs", "max(xs) - min(xs)", numbers),
    ("square every item", "xs", "[x * x for x in xs]", numbers),
    ("how many items are above {k}", "xs", "sum(x > {k} for x in xs)", numbers),
    ("whether any item is {k}", "xs", "{k} in xs", numbers),
    ("how often n occurs", "xs, n", "xs.count(n)", item_in),
    ("whether n occurs", "xs, n", "n in xs", item_in),
    ("the list without n", "xs, n", "[x for x in xs if x != n]", item_in),
    ("the text in capitals", "s", "s.upper()", text),
    ("the text backwards", "s", "s[::-1]", text),
    ("whether the text is a palindrome", "s", "s == s[::-1]", text),
    ("the text {k} times", "s", "s * {k}", text),
    ("length of the text", "s", "len(s)", text),
    ("first letter", "s", "s[0]", text),
    ("number of words", "s", "len(s.split())", words),
    ("words in reverse order", "s", '" ".join(s.split()[::-1])', words),
    ("larger of the two", "a, b", "max(a, b)", two),
    ("a plus b", "a, b", "a + b", two),
    ("remainder of a by b", "a, b", "a % b", two),
    ("whether b divides a", "a, b", "a % b == 0", two),
)
SHOWN, HIDDEN = 2, 4


def make(rng: random.Random) -> Problem:
    """A comment, two example calls, and the head of the function."""
    says, parameters, body, arguments = rng.choice(TEMPLATES)
    k = rng.randint(2, 5)
    says, body = says.format(k=k), body.format(k=k)
    calls = [arguments(rng) for _ in range(SHOWN + HIDDEN)]
    examples = [(call, value(body, parameters, call)) for call in calls]
    asserts = [f"# f({', '.join(map(repr, call))}) == {result!r}" for call, result in examples[:SHOWN]]
    prompt = "\n".join([f"# {says}", *asserts, f"def f({parameters}):", ""])
    return Problem("python", prompt, f"    return {body}", {"parameters": parameters, "examples": examples})


def value(body: str, parameters: str, call: tuple) -> object:
    """The value of a template's body for these arguments."""
    return eval(body, dict(zip(parameters.split(", "), call, strict=True)))


def body_of(text: str) -> str:
    """The indented lines that an answer begins with."""
    lines = []
    for line in text.split("\n"):
        if line.strip() and not line.startswith((" ", "\t")):
            break
        lines.append(line)
    return "\n".join(lines)


def check(problem: Problem, text: str) -> Grade:
    """Shown and hidden calls of the function decide; its body is the indented lines that the answer begins
    with.
    """
    head, examples = f"def f({problem.facts['parameters']}):", problem.facts["examples"]
    ran = sandbox.call(f"{head}\n{body_of(text)}", "f", [call for call, _ in examples])
    for count, (result, (_, wanted)) in enumerate(zip(ran.values, examples, strict=False)):
        if result != repr(wanted):
            which = "a shown call" if count < SHOWN else "a hidden call"
            return Grade(False, f"It gives {result} in {which} that should give {wanted!r}."[:200])
    if ran.failed:
        return Grade(False, ran.failed)
    return Grade(True, "It is right in all calls, shown and hidden.")


TASKS = (Task("python", "A one-line Python function from a description and two asserts.", make, check),)
