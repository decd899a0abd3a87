"""The numbered steps of the algorithm in a strategy's docstring, and which of them an event belongs to.

assets/algorithm_steps.json has a row for each strategy of the package with numbered steps: for each step a
list of selectors. The first step with a selector that matches an event is its step. A selector is one
condition, or several joined by `+`, all of which must hold:

    Forward           an event of this class, any of decoders.trace.events.EVENTS
    Verdict:accepted  an event of this class with this value in one of the fields that tell such events apart
    code:close_step   this function of the strategy was running when the event was recorded

A step without selectors leaves no event of its own: it happens inside a forward or between two events, or no
event tells it from another step. An event that only shows what was there belongs to no step.
"""

import inspect
import json
import re
from collections.abc import Sequence
from functools import cache

from decoders.packages import assets
from decoders.trace.events import EVENTS, Event

TELLING = {  # the fields that tell events of a class apart
    "Forward": ("model", "kind"),
    "Propose": ("source",),
    "Verdict": ("status",),
    "Distribution": ("view",),
    "Rank": ("name",),
    "Measure": ("name",),
    "Table": ("name",),
    "Span": ("name",),
    "Depend": ("kind",),
    "Cell": ("state",),
}


def paragraphs_of(docstring: str) -> list[str]:
    """The parts of a docstring between its empty lines."""
    return re.split(r"\n\s*\n", inspect.cleandoc(docstring))


def prose_and_steps(paragraph: str) -> tuple[str, list[str]]:
    """The prose with which a paragraph begins, and its numbered steps, each as one line."""
    prose, *steps = re.split(r"(?m)^\d+\. ", paragraph)
    return one_line(prose), [one_line(step) for step in steps]


def steps_of(docstring: str) -> list[str]:
    """The numbered steps in a docstring, each as one line."""
    return [step for part in paragraphs_of(docstring) for step in prose_and_steps(part)[1]]


def one_line(text: str) -> str:
    """Lines of prose as one."""
    return " ".join(text.split())


@cache
def all_selectors() -> dict[str, list[list[str]]]:
    """Name of a strategy -> the selectors of each of its steps."""
    return json.loads((assets() / "algorithm_steps.json").read_text("utf-8"))


def selectors_of(strategy_name: str) -> list[list[str]]:
    """The selectors of each step of a strategy; none without numbered steps or outside the package."""
    return all_selectors().get(strategy_name, [])


def step_of(event: Event, functions: Sequence[str], selectors: Sequence[Sequence[str]]) -> int | None:
    """The index of the first step one of whose selectors matches; None if none does. functions: the names of
    the strategy's own functions that ran when the event was recorded.
    """
    for index, step in enumerate(selectors):
        if any(matches(selector, event, functions) for selector in step):
            return index
    return None


def matches(selector: str, event: Event, functions: Sequence[str]) -> bool:
    """Whether all conditions of a selector hold."""
    return all(holds(condition, event, functions) for condition in selector.split("+"))


def holds(condition: str, event: Event, functions: Sequence[str]) -> bool:
    """Whether one condition holds."""
    kind, _, value = condition.partition(":")
    if kind == "code":
        return value in functions
    if type(event) is not EVENTS[kind]:
        return False
    return not value or value in (getattr(event, field) for field in TELLING[kind])
