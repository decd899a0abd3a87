"""Syntax checks for programs that a prompt asks for: list programs, checked letter by letter, and Python
bodies.

`allowed` sees the prompt and the text so far, and never refuses what may still become valid.
"""

import ast

from explorer.tasks.list_programs import OPERATIONS, WITH_NUMBER
from explorer.tasks.own_tests import LIST_PROMPT, PYTHON_PROMPT
from explorer.tasks.python_programs import body_of

LINES = [name for name in OPERATIONS if name not in WITH_NUMBER]
LINES += [f"{name} {digit}" for name in WITH_NUMBER for digit in range(10)]
CLOSING = {")": "(", "]": "[", "}": "{"}


def allowed(prompt: str, written: str, whole: bool) -> bool | None:
    """Whether a text is (`whole`) or may become a valid program; None if the prompt asks for none."""
    if LIST_PROMPT.search(prompt):
        return list_program(written, whole)
    if match := PYTHON_PROMPT.search(prompt):
        return python_body(match[2], written, whole)
    return None


def list_program(written: str, whole: bool) -> bool:
    """One operation per line; after a blank line anything is allowed, since it is ignored."""
    read, _, after = written.partition("\n\n")
    *lines, last = read.split("\n")
    if after or whole:
        lines, last = [line for line in (*lines, last) if line], ""
    return all(line.strip() in LINES for line in lines) and any(line.startswith(last) for line in LINES)


def python_body(head: str, written: str, whole: bool) -> bool:
    """The indented lines of a function: complete lines must parse, and the closed brackets of the last line
    must match.
    """
    body = body_of(written)
    ended = whole or body != written
    done, _, last = body.rpartition("\n") if not ended else (body, "", "")
    if last.strip() and not last.startswith((" ", "\t")):
        return False
    return (not done.strip() and not ended or parsed(f"{head}\n{done}")) and matching(last)


def parsed(program: str) -> bool:
    """Whether Python can parse it."""
    try:
        ast.parse(program)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def matching(line: str) -> bool:
    """Whether no bracket outside quotes closes one that was not opened."""
    opened, quote = [], ""
    for letter in line:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            opened.append(letter)
        elif letter in CLOSING and (not opened or opened.pop() != CLOSING[letter]):
            return False
    return True
