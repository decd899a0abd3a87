"""The tests in a prompt: examples of a list program, or asserts of a Python function.

Strategies plan by `pass_rate`, which sees only what the model was shown, never a hidden example.
"""

import ast
import re

from explorer.tasks import list_programs, python_programs, sandbox

# `++` forbids backtracking over lines, which would take time exponential in their number
LIST_PROMPT = re.compile(r"program for\n((?:[\d ]*-> ?[\d ]*\n)++)is\n\Z")
PYTHON_PROMPT = re.compile(r"((?:# f\(.*\) == .*\n)++)(def f\([a-z, ]*\):)\n\Z")


def pass_rate(prompt: str, written: str) -> float | None:
    """The share of the prompt's tests that the program written after it passes; None if there are none."""
    if match := LIST_PROMPT.search(prompt):
        return list_rate(match[1], written)
    if match := PYTHON_PROMPT.search(prompt):
        return python_rate(match[1], match[2], written)
    return None


def runs_code(prompt: str) -> bool:
    """Whether `pass_rate` runs Python for this prompt."""
    return PYTHON_PROMPT.search(prompt) is not None


def list_rate(examples: str, written: str) -> float:
    """The share passed of examples such as `3 1 -> 1 3`, one per line."""
    program, right = list_programs.lines_of(written), []
    for line in examples.splitlines():
        given, wanted = ([int(x) for x in part.split()] for part in line.split("->"))
        right.append(list_programs.run(program, given) == wanted)
    return sum(right) / len(right)


def python_rate(asserts: str, head: str, written: str) -> float:
    """The share passed of asserts such as `# f([1], 2) == 3`, one per line; runs in the sandbox."""
    calls, wanted = [], []
    try:
        for line in asserts.splitlines():
            test = ast.parse(line.removeprefix("# "), mode="eval").body
            calls.append(tuple(ast.literal_eval(argument) for argument in test.left.args))
            wanted.append(repr(ast.literal_eval(test.comparators[0])))
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, MemoryError):
        return 0.0  # a comment that only looks like a test
    ran = sandbox.call(f"{head}\n{python_programs.body_of(written)}", "f", calls)
    return sum(result == right for result, right in zip(ran.values, wanted, strict=False)) / len(wanted)
