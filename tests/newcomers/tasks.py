"""The tasks that newcomers are given, and how what they find is judged.

A task is a generator: it does with the page what a newcomer would do, and yields findings, pairs of whether
something is as it should be and of the fact that says so. The first finding is what was asked for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Error

from tests.newcomers.guest import Guest

Finding = tuple[bool | None, str]  # None: only an eye can judge it
Findings = Iterator[Finding]
Walk = Callable[[Guest], Findings]
PERSONS = {"T": "teacher", "R": "researcher", "V": "visitor with a phone"}


@dataclass(frozen=True)
class Task:
    """`words`: what was asked; `person`: by whom, which decides size and theme of the window."""

    name: str
    person: str
    words: str
    walk: Walk


@dataclass
class Judged:
    """What came of a task: `well`, `half`, `not`, or `look` where an eye has to judge."""

    findings: list[Finding] = field(default_factory=list)
    broken: str = ""  # what ended it before its end

    def verdict(self) -> str:
        """In one word."""
        held = [holds for holds, _ in self.findings]
        if not held or held[0] is False:
            return "not"
        if self.broken or False in held:
            return "half"
        return "look" if None in held else "well"

    def facts(self) -> str:
        """What was found; what is not as it should be stands in front, after a cross."""
        wrong = [f"✕ {fact}" for holds, fact in self.findings if holds is False]
        if self.broken:
            wrong.append(f"✕ {self.broken}")
        told = [*wrong, *(fact for holds, fact in self.findings if holds is not False)]
        return " ".join("; ".join(told).split())


TASKS: dict[str, Task] = {}


def task(name: str, words: str, person: str = "") -> Callable[[Walk], Walk]:
    """Registers a task; the letter of its name is its person, if none is given."""

    def register(walk: Walk) -> Walk:
        TASKS[name] = Task(name, PERSONS[person or name[0]], words, walk)
        return walk

    return register


def judged(one: Task, guest: Guest) -> Judged:
    """Does a task. What stops a newcomer, such as a button that is not there, is a finding too."""
    found = Judged()
    try:
        for finding in one.walk(guest):
            found.findings.append(finding)
    except (Error, AssertionError, LookupError, TypeError, ValueError, RuntimeError) as error:
        found.broken = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if guest.errors:
        found.findings.append((False, f"a script failed: {guest.errors[0].splitlines()[0]}"))
    return found
