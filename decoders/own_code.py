"""Which lines of a strategy run: the stack of its own functions, read from Python's frames.

A strategy's own functions are those in the families' folders and in the files in which users declare
strategies. Functions of lanes, engines and other code that they call are left out.
"""

import inspect
import itertools
import linecache
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeVar

from decoders.strategy_files import FAMILIES
from decoders.trace.code import NOWHERE, Code, Function, Line

F = TypeVar("F", bound=Callable)

# Of each function on the stack, innermost first: the number of its code, and the instruction that runs.
Stack = tuple[int, ...]

PACKAGE = Path(__file__).parent
FOLDERS = tuple(f"{PACKAGE / family}{os.sep}" for family in FAMILIES)
WITHOUT_NAME = "<"  # a comprehension or lambda, which stands in the lines of the function around it
BEGINS = re.compile(r"\s*(async )?def ")  # below the decorators, with which a function's lines begin

OWN, OTHER, BOTTOM = 1, 2, 3  # a strategy's; anybody's; the step of a lane, which a strategy runs in

_files: set[str] = set()  # of strategies that are not in the package
_codes: dict[int, CodeType] = {}  # every code that was met: kept, so that no other gets its number
_kinds: dict[int, int] = {}


def declared_in(run: Callable) -> None:
    """The file of this generator, or of the function that it wraps, declares a strategy."""
    file = inspect.unwrap(run).__code__.co_filename
    if not file.startswith(str(PACKAGE)):
        _files.add(file)


def passes_on(function: F) -> F:
    """Decorator of a function that only passes on what a strategy records: the place is its caller's."""
    keep(function.__code__, OTHER)
    return function


def step_of_lane(function: F) -> F:
    """Decorator of the function that runs the steps of a lane: nothing below it is a strategy's."""
    keep(function.__code__, BOTTOM)
    return function


def stack() -> Stack:
    """The strategy's own functions that run now, below the caller; empty if none of them runs. It takes about
    a microsecond, so lines and sources are looked up later, once for each place.
    """
    frame: FrameType | None = sys._getframe(2)
    own: Stack = ()
    while frame is not None:
        kind = _kinds.get(id(frame.f_code)) or look_at(frame.f_code)
        if kind is OWN:
            own += (id(frame.f_code), frame.f_lasti)
        elif kind is BOTTOM:
            break
        frame = frame.f_back
    return own


def look_at(code: CodeType) -> int:
    """Whose a code is that was not met before."""
    own = code.co_filename.startswith(FOLDERS) or code.co_filename in _files
    return keep(code, OWN if own and not code.co_name.startswith(WITHOUT_NAME) else OTHER)


def keep(code: CodeType, kind: int) -> int:
    """Keeps whose a code is, and returns it."""
    _codes[id(code)], _kinds[id(code)] = code, kind
    return kind


class Places:
    """The places of a lane's strategy, numbered as they are met, in the `Code` of its trace."""

    def __init__(self, code: Code):
        self.code = code
        self.places: dict[Stack, int] = {(): NOWHERE}
        self.functions: dict[int, int] = {}

    def here(self) -> int:
        """The number of the place at which the strategy stands now; NOWHERE if none of its functions runs."""
        return self.of(stack())

    def of(self, found: Stack) -> int:
        """The number of the place at which the stack stood; NOWHERE if it was empty."""
        place = self.places.get(found)
        if place is None:
            place = len(self.code.places)
            pairs = list(zip(found[::2], found[1::2], strict=True))[::-1]
            self.code.places.append([self._line(number, at) for number, at in pairs])
            self.places[found] = place
        return place

    def _line(self, code: int, instruction: int) -> Line:
        number = self.functions.get(code)
        if number is None:
            number = self.functions[code] = len(self.code.functions)
            self.code.functions.append(function_of(code))
        return [number, *lines_of(code, instruction)]


# Two codes may be equal though they stand in two files, so what is known of a code is kept by its number.
@cache
def lines_of(number: int, instruction: int) -> tuple[int, int]:
    """The first and last line of the expression in a code that an instruction belongs to."""
    code = _codes[number]
    first, last, *_ = next(itertools.islice(code.co_positions(), instruction // 2, None))
    first = first or code.co_firstlineno
    return first, last or first


@cache
def function_of(number: int) -> Function:
    """The function of a code with its source, without decorators; empty where Python has no source."""
    code = _codes[number]
    linecache.checkcache(code.co_filename)  # a user may have changed the file and declared it again
    lines = linecache.getlines(code.co_filename)
    first, last = code.co_firstlineno, last_line(code)
    while first < last and not BEGINS.match("".join(lines[first - 1 : first])):
        first += 1
    path = Path(code.co_filename)
    name = path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE) else path.name
    return Function(code.co_qualname, name, first, "".join(lines[first - 1 : last]))


def last_line(code: CodeType) -> int:
    """The last line of a code and of those inside it."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    own = [line for _, _, line in code.co_lines() if line is not None]
    return max([code.co_firstlineno, *own, *map(last_line, inner)])
