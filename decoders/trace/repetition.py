"""Where a text repeats itself: phrases that stood there before, and loops, in which a text writes the same
stretch again and again.

A fold over its tokens that never looks ahead.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PHRASE = 6  # tokens that make a repetition if the text has them already


@dataclass(frozen=True, slots=True)
class Loop:
    """A stretch that is repeated immediately after itself: `period` tokens from place `first` on (counted
    from 0), and their copies up to `stop`, the last of which may be unfinished.
    """

    first: int
    period: int
    stop: int

    @property
    def begins(self) -> int:
        """The place of the first token that is a copy."""
        return self.first + self.period

    @property
    def copies(self) -> int:
        """How often the whole stretch is written, the first time included."""
        return (self.stop - self.first) // self.period

    def goes_on(self, text: Sequence[int], place: int) -> int:
        """The token with which the loop would go on at a place."""
        return text[place - self.period]


@dataclass(frozen=True)
class Exits:
    """A loop under one processor, see `decoders.logits.loop_exits`. leaving: for each token from the first
    copy on, the probability of leaving the loop there, if the text is still in it; greedy_leaves: the first
    of these tokens at which the most likely token leaves the loop.
    """

    name: str
    title: str
    leaving: list[float]
    greedy_leaves: int | None

    @property
    def mean(self) -> float:
        """The mean probability to leave it at a token."""
        return math.fsum(self.leaving) / len(self.leaving)

    @property
    def staying(self) -> list[float]:
        """The probability that the text is still in the loop after each token."""
        left, made = 1.0, []
        for p in self.leaving:
            left *= 1.0 - p
            made.append(left)
        return made

    def within(self, first: int, count: int) -> float:
        """The probability to leave within `count` tokens from the place `first` on."""
        return 1.0 - math.prod(1.0 - p for p in self.leaving[first : first + count])


class Repeats:
    """Reads a text token by token. phrases: the last PHRASE tokens of every place -> the places at which they
    began first and last; loop: the one that the text is in, or else the newest.
    """

    def __init__(self) -> None:
        self.text: list[int] = []
        self.phrases: dict[tuple[int, ...], tuple[int, int]] = {}
        self.repeats = False  # whether the newest phrase stood there before
        self.period: int | None = None  # of the copy that is being written, a loop or not yet
        self.first = 0  # where what is copied begins
        self.loop: Loop | None = None

    def feed(self, token: int) -> tuple[int, int] | None:
        """Where the newest phrase begins and where it stood first, once for each stretch that repeats."""
        self.text.append(token)
        begins = len(self.text) - PHRASE
        self._continue(token)
        if begins < 0:
            return None
        phrase = tuple(self.text[begins:])
        first, last = self.phrases.get(phrase, (begins, begins))
        self.phrases[phrase] = first, begins
        if self.period is None and last < begins:
            self.period, self.first = begins - last, last
            self._close_in()
        began, self.repeats = self.repeats, first < begins
        return (begins, first) if self.repeats and not began else None

    @property
    def looping(self) -> bool:
        """Whether the newest token belongs to the loop."""
        return self.loop is not None and self.loop.stop == len(self.text)

    def _continue(self, token: int) -> None:
        if self.period is None:
            return
        if token != self.text[-1 - self.period]:
            self.period = None
        else:
            self._close_in()

    def _close_in(self) -> None:
        """A copy is a loop once it has come to the end of what it copies."""
        made = Loop(self.first, self.period or 1, len(self.text))
        if made.copies > 1:
            self.loop = made


def loops(text: Iterable[int]) -> list[Loop]:
    """The loops of a text, in order."""
    repeats, found = Repeats(), {}
    for token in text:
        repeats.feed(token)
        if repeats.looping and repeats.loop:
            found[repeats.loop.first, repeats.loop.period] = repeats.loop
    return list(found.values())
