"""The code that ran, for the drawer of a lane: the strategy's own functions as HTML, and for every event its
place in them, its step of the algorithm, and its numbers.

assets/web/page/code.js shows it. Returns plain data, which a saved page can hold.
"""

import ast
import textwrap
from functools import lru_cache
from itertools import groupby

from pygments import lex
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, String, _TokenType

from decoders.explain.algorithm import selectors_of, step_of, steps_of
from decoders.trace.code import NOWHERE, Code, Function
from decoders.trace.events import Event, Verdict
from decoders.trace.trace import Trace
from explorer.inspector.event_words import Wording
from explorer.markup import Html, h, joined

NO_CODE = (
    "This run was recorded without its code: press Run to decode it here, or record it with this version."
)
NO_SOURCE = "Python has no source of this function."
LOOKS = {Comment: "i", String: "em", Keyword: "b"}  # the elements in which they stand


def drawer(trace: Trace, steps: int = 0, functions: int = 0, places: int = 0) -> dict:
    """What the page does not have yet; it has so many steps, functions and places.

    `{algorithm, functions: [{name, file, first, html}], places, steps: [[[place, step of the algorithm, what,
    values, node, why], ...], ...]}`, `{problem}` without code.
    """
    if trace.code is None:
        return {"problem": NO_CODE}
    rows = events_of(trace, steps)  # first: a lane that runs adds functions and places before its steps
    return {
        "algorithm": [sentence(step) for step in steps_of(trace.code.algorithm)],
        "functions": [shown(function) for function in trace.code.functions[functions:]],
        "places": trace.code.places[places:],
        "steps": rows,
    }


def events_of(trace: Trace, begin: int) -> list[list[list]]:
    """The events of the steps from `begin` on, for those that the strategy's own code recorded."""
    assert trace.code is not None
    wording, selectors, rows = Wording(trace), selectors_of(trace.strategy), []
    for step in list(trace.steps):
        for event in step.events:
            wording.add(event)
        if step.index < begin:
            continue
        row, at = [], NOWHERE
        for (place, *_), group in groupby(zip(step.places or (), step.events, strict=False), alike):
            if place != NOWHERE:
                events = [event for _, event in group]
                said = wording.of_group(events)
                found = step_of(events[0], names_at(trace.code, place), selectors)
                at = at if found is None else found  # what belongs to no step happens during the last one
                row.append([place, at, said.what, said.values, said.node, said.why])
        rows.append(row)
    return rows


def alike(placed: tuple[int, Event]) -> tuple:
    """What events have in common that a line records one after the other. A test of a token stands alone."""
    place, event = placed
    if isinstance(event, Verdict):
        return place, event.status, event.node if event.q is not None else None
    return place, type(event)


def names_at(code: Code, place: int) -> list[str]:
    """The names of the functions at a place, without those of their classes."""
    return [code.functions[at].name.rpartition(".")[2] for at, *_ in code.places[place]]


def sentence(text: str) -> Html:
    """A step of an algorithm; its formulas stand between backticks."""
    return joined(h("code", "", part) if at % 2 else part for at, part in enumerate(text.split("`")))


@lru_cache(maxsize=2000)
def shown(function: Function) -> dict:
    """A function for the drawer: its lines as HTML, without its docstring."""
    name = function.name.replace(".<locals>", "")
    lines = highlighted(function.source)
    said = docstring(function.source)
    numbered = [
        h("li", {"value": function.first + at}, line or " ")
        for at, line in enumerate(lines)
        if at not in said
    ]
    problem = None if numbered else h("li", "", NO_SOURCE)
    body = Html("".join(numbered) or problem)
    return {"name": name, "file": function.file, "first": function.first, "html": body}


def highlighted(source: str) -> list[Html]:
    """The lines of a source, with its comments, texts and keywords in elements of their own."""
    lines: list[list[str]] = [[]]
    for element, group in groupby(lex(source, PythonLexer(stripnl=False)), element_of):
        for at, piece in enumerate("".join(text for _, text in group).split("\n")):
            if at:
                lines.append([])
            if piece:
                lines[-1].append(h(element, "", piece) if element else piece)
    return [joined(line) for line in lines[:-1]]


def element_of(lexed: tuple[_TokenType, str]) -> str | None:
    """The element in which a piece of source stands, None for plain text."""
    return next((LOOKS[kind] for kind in lexed[0].split() if kind in LOOKS), None)


def docstring(source: str) -> range:
    """Which lines of a function are its docstring; none where Python cannot read it, since an opened file may
    have anything there.
    """
    try:
        first = ast.parse(textwrap.dedent(source)).body[0].body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError, AttributeError):
        return range(0)
    is_text = isinstance(first, ast.Expr) and isinstance(getattr(first, "value", None), ast.Constant)
    return range(first.lineno - 1, first.end_lineno) if is_text else range(0)
