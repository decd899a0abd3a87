"""How far an experiment is: its loops go through `each`, and whoever opened `watched` hears after every item
what share of the whole is done.

A loop inside a loop fills the part of the item that it works on, so the share is always that of the whole,
however deep the loop that reports it. Loops that follow each other share what is left: `each(items,
until=0.8)` leaves the last fifth to the loops after it, and so does `with part(0.8)`. An experiment has a
process of its own, so the state is kept in this module.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TypeVar

Item = TypeVar("Item")
Hearer = Callable[[float], None]

_place: list[float] = [0.0, 1.0]  # start and end of the current part, as shares of the whole
_hearers: list[Hearer] = []


@contextmanager
def watched(hear: Hearer) -> Iterator[None]:
    """While this is open, `hear` is called with the finished share, from 0 to 1, whenever an item is done."""
    _place[:] = [0.0, 1.0]
    _hearers.append(hear)
    try:
        yield
    finally:
        _hearers.remove(hear)


def each(
    items: Iterable[Item], until: float = 1.0, weight: Callable[[Item], float] = lambda item: 1.0
) -> Iterator[Item]:
    """Yields the items in order. Together they make up the share `until` of the remaining work around them;
    each item takes its part of this by weight.
    """
    known = list(items)
    begin, end = _place
    last = begin + until * (end - begin)
    weights = [weight(item) for item in known]
    done = begin
    for item, total in zip(known, accumulate(weights), strict=True):
        start, done = done, begin + (last - begin) * total / sum(weights)
        _place[:] = [start, done]
        yield item
        _report(done)
    _place[:] = [last, end]


@contextmanager
def part(until: float) -> Iterator[None]:
    """Whatever runs while this is open makes up the share `until` of the remaining work around it."""
    yield from each([None], until)


def _report(done: float) -> None:
    for hear in _hearers:
        hear(done)
