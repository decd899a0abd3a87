"""The one source of randomness: every random decision of a strategy goes through a chooser.

`Random` draws from separate streams keyed by seed, purpose and position, so lanes with one seed share their
luck and a token is never correlated with the draw that tests it. `Script` forces outcomes. `Exhaustive` walks
all of them.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable
from itertools import accumulate
from typing import NamedTuple, Protocol

import torch

from decoders.refusal import Refusal

Tag = tuple[Hashable, ...]  # (purpose, position, ...): names the stream and the position in it


class Draw(NamedTuple):
    """An outcome (a bool or an index) and the uniform number that decided it; None if nothing was drawn."""

    value: int
    u: float | None


class Chooser(Protocol):
    """The random decisions that a strategy may ask for."""

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        """True with `probability`: accept iff u < probability."""

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        """An index of weights [V] (non-negative, any sum) with probability in proportion to it."""

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        """Independent numbers [count] (float64), uniform in the open interval from 0 to 1."""


def digest(seed: int, tag: Tag) -> int:
    """A 64-bit hash of `seed` and `tag`; it depends on no earlier draw."""
    return int.from_bytes(hashlib.blake2b(repr((seed, *tag)).encode(), digest_size=8).digest(), "big")


def uniform(seed: int, tag: Tag) -> float:
    """The uniform number in [0, 1) for `seed` and `tag`."""
    return (digest(seed, tag) >> 11) * 2.0**-53


class Random:
    """Draws that depend only on the seed and the tag."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        u = uniform(self.seed, tag)
        return Draw(u < probability, u)

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        u = uniform(self.seed, tag)
        return Draw(invert(weights, u), u)

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        generator = torch.Generator().manual_seed(digest(self.seed, tag) >> 1)
        return torch.rand(count, generator=generator, dtype=torch.float64).clamp(min=2.0**-53)


def invert(weights: torch.Tensor, u: float) -> int:
    """The index where the running sum of weights [V] passes u times the total; never one of weight zero."""
    cumulative = weights.double().cumsum(0)
    total = cumulative[-1]
    index = int(torch.searchsorted(cumulative, u * total, right=True))
    if index >= len(weights):  # u * total rounded up to the total
        index = int(weights.nonzero()[-1])
    return index


class Script:
    """Plays a list of outcomes back: for unit tests and for "what if this had been rejected?"."""

    def __init__(self, outcomes: Iterable[float]):
        self.outcomes = list(outcomes)

    def _next(self, tag: Tag) -> float:
        if not self.outcomes:
            raise Refusal(f"The script has no outcome left for {tag}.")
        return self.outcomes.pop(0)

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        return Draw(bool(self._next(tag)), None)

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        return Draw(int(self._next(tag)), None)

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        return torch.tensor([self._next(tag) for _ in range(count)], dtype=torch.float64)


class Known:
    """Repeats decisions with uniform numbers that were recorded earlier: purpose -> number."""

    def __init__(self, numbers: dict[Hashable, float]):
        self.numbers = numbers

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        u = self.numbers[tag[0]]
        return Draw(u < probability, u)

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        u = self.numbers[tag[0]]
        return Draw(invert(weights, u), u)

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        raise Refusal(f"The numbers of {tag} are not known.")


SLIVER = 1e-13  # an interval shorter than this is a rounding error


class Exhaustive:
    """Walks every outcome: `distribution(run)` calls `run(chooser)` once per possible history and adds up the
    probabilities.

    As in `Random`, a tag stands for one uniform number, and each outcome narrows the interval in which that
    number lies. A second draw with the same tag is therefore not independent of the first.
    """

    def __init__(self) -> None:
        self.forced: list[int] = []  # option to take at each draw of the next history
        self.taken: list[tuple[int, int]] = []  # (option, number of options) at each draw of this history
        self.intervals: dict[Tag, tuple[float, float]] = {}  # tag -> where its number lies in this history
        self.probability = 1.0

    def _take(self, options: Iterable[tuple[int, float]], tag: Tag) -> Draw:
        """One of the options (value, probability), which divide [0, 1) in this order."""
        low, high = self.intervals.get(tag, (0.0, 1.0))
        possible, start = [], 0.0
        for value, probability in options:
            left, right = max(start, low), min(start + probability, high)
            if right - left > SLIVER:
                possible.append((value, left, right))
            start += probability
        at = len(self.taken)
        option = self.forced[at] if at < len(self.forced) else 0
        self.taken.append((option, len(possible)))
        value, left, right = possible[option]
        self.intervals[tag] = left, right
        self.probability *= (right - left) / sum(b - a for _, a, b in possible)
        return Draw(value, None)

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        return self._take([(True, probability), (False, 1.0 - probability)], tag)

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        values = weights.double().tolist()
        total = list(accumulate(values))[-1]
        return self._take([(i, w / total) for i, w in enumerate(values)], tag)

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        raise Refusal(f"The outcomes of {tag} are continuous: they cannot all be walked.")

    def distribution(self, run: Callable[["Exhaustive"], Hashable]) -> dict[Hashable, float]:
        """Outcome of `run` -> its exact probability (float64). `run` must draw through this chooser alone."""
        distribution: dict[Hashable, float] = {}
        self.forced = []
        while True:
            self.taken, self.intervals, self.probability = [], {}, 1.0
            outcome = run(self)
            distribution[outcome] = distribution.get(outcome, 0.0) + self.probability
            while self.taken and self.taken[-1][0] + 1 == self.taken[-1][1]:
                self.taken.pop()
            if not self.taken:
                return distribution
            self.forced = [option for option, _ in self.taken[:-1]] + [self.taken[-1][0] + 1]


class SeparateStreams:
    """Draws from another chooser under longer tags, with `before` in front and `after` behind, so that the
    streams stay separate.
    """

    def __init__(self, chooser: Chooser, before: Tag = (), after: Tag = ()):
        self.chooser, self.before, self.after = chooser, before, after

    def _longer(self, tag: Tag) -> Tag:
        return (*self.before, *tag, *self.after)

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        return self.chooser.bernoulli(probability, self._longer(tag))

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        return self.chooser.categorical(weights, self._longer(tag))

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        return self.chooser.uniforms(count, self._longer(tag))
