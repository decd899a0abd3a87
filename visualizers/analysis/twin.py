"""One text scored by two engines: at each place whether they agree, and if not, what explains the difference.

Two engines that compute the same model differ by rounding alone. How far rounding reaches depends on the less
precise format; see `Rounding`. A difference beyond it has a cause: a temperature, probabilities renormalised
after truncation, or another computation.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

TOP = 20  # most likely tokens kept at each place
NEAR = 7.0  # nats below the most likely token: less likely ones are not compared


class Meaning(NamedTuple):
    """A verdict in words: its name, and when it holds."""

    name: str
    when: str


VERDICTS = {
    "rounding": Meaning("rounding", "the difference is within what the less precise format explains"),
    "tie": Meaning("tie", "as rounding, and the most likely token differs; greedy decoding may diverge here"),
    "temperature": Meaning(
        "temperature", "B's log-probabilities are A's times one factor, the same at all places"
    ),
    "renormalised": Meaning(
        "renormalised", "B's log-probabilities are A's plus a constant, as after truncation"
    ),
    "other": Meaning("other computation", "rounding does not explain the difference"),
    "unknown": Meaning("unknown", "one of the engines gives no number here"),
}


@dataclass(frozen=True)
class Rounding:
    """How far log-probabilities of one model differ between a format and float32, in nats: at one place,
    among tokens that matter (`NEAR`), and in the median over a text. Four shipped models stayed below them
    (docs/twin.md); a mixture of experts goes beyond them where rounding changes a token's experts.
    """

    place: float
    median: float


ROUNDING = {
    "float64": Rounding(1e-9, 1e-10),
    "float32": Rounding(1e-4, 1e-5),
    "float16": Rounding(0.3, 0.02),
    "bfloat16": Rounding(0.9, 0.15),
}
ORDER = list(ROUNDING)  # the least precise last
COARSEST = ORDER[-1]
SURELY = 0.02  # a factor further from 1 is no rounding
MOSTLY = 0.9  # share of the places that one explanation must fit


@dataclass(frozen=True)
class Reading:
    """What one engine says at one place. `logprob`: of the text's token; `rank`: 1 is the most likely; both
    None where the engine does not name the token. `top`: (token, log-probability), most likely first; `mass`:
    the probability of all tokens that it names.
    """

    logprob: float | None
    rank: int | None
    top: list[tuple[int, float]]
    mass: float


@dataclass(frozen=True)
class Place:
    """A token of the text, at `position` from 1, with both readings. `kl`: of A from B in nats, None unless
    both give whole distributions; `margin`: the smallest lead of a most likely token over the second;
    `verdict`: one of VERDICTS.
    """

    position: int
    token: int
    text: str
    a: Reading
    b: Reading
    kl: float | None
    margin: float | None
    verdict: str

    @property
    def difference(self) -> float | None:
        """B's log-probability minus A's."""
        return None if None in (self.a.logprob, self.b.logprob) else self.b.logprob - self.a.logprob

    @property
    def flips(self) -> bool:
        """Whether the engines' most likely tokens differ."""
        return flips(self.a, self.b)


@dataclass(frozen=True)
class Twin:
    """A text on two engines. `formats`: the number formats of both, None where it is not known; `precision`:
    the format whose rounding the verdicts allow for; `before`: the part of the text that was not compared;
    `texts`: of the tokens that occur, the most likely ones included; `factor`: B's log-probabilities are A's
    times this (1 without a temperature).
    """

    names: tuple[str, str]
    formats: tuple[str | None, str | None]
    precision: str
    before: str
    places: list[Place]
    texts: dict[int, str]
    factor: float

    @property
    def rounding(self) -> Rounding:
        """The bounds of `precision`."""
        return ROUNDING[self.precision]

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of places, in the order of VERDICTS."""
        found = Counter(place.verdict for place in self.places)
        return {name: found[name] for name in VERDICTS if found[name]}


def twin(
    names: tuple[str, str],
    formats: tuple[str | None, str | None],
    before: str,
    tokens: Sequence[int],
    texts: dict[int, str],
    readings: Sequence[tuple[Reading, Reading]],
    divergences: Sequence[float | None],
) -> Twin:
    """Compares the readings of the tokens after `before`, place by place."""
    pairs = [common(a, b) for a, b in readings]
    factor = factor_of(pairs, ROUNDING[COARSEST if None in formats else coarsest(formats)].place)
    precision = precision_of(formats, varying(readings, pairs, factor))
    within = ROUNDING[precision].place
    places = [
        Place(at, token, texts[token], a, b, kl, margin(a, b), verdict(a, b, pair, factor, within))
        for at, (token, (a, b), kl, pair) in enumerate(
            zip(tokens, readings, divergences, pairs, strict=True), 1
        )
    ]
    return Twin(names, formats, precision, before, places, texts, factor)


def coarsest(formats: Sequence[str | None]) -> str:
    """The least precise of the formats that are known."""
    return max((one for one in formats if one is not None), key=ORDER.index, default=ORDER[0])


def varying(
    readings: Sequence[tuple[Reading, Reading]], pairs: Sequence[list[tuple[float, float]]], factor: float
) -> list[float]:
    """How much the difference varies among the tokens of each place, which neither a truncation nor a
    temperature changes; where no likely tokens were recorded, how large it is.
    """
    found = [spread(pair, factor) for pair in pairs if len(pair) > 1]
    own = [(a.logprob, b.logprob) for a, b in readings]
    return found or [abs(y - x) for x, y in own if x is not None and y is not None]


def precision_of(formats: Sequence[str | None], varies: list[float]) -> str:
    """The less precise of two formats. Where one is not known, the most precise that explains how much most
    places vary.
    """
    known = coarsest(formats)
    if None not in formats:
        return known
    possible = ORDER[ORDER.index(known) :]
    enough = [one for one in possible if varies and median(varies) <= ROUNDING[one].place / 4]
    return enough[0] if enough else COARSEST


def common(a: Reading, b: Reading) -> list[tuple[float, float]]:
    """The log-probabilities of the tokens that both name, the most likely of A first."""
    known, least = dict(b.top), a.top[0][1] - NEAR if a.top else 0.0
    return [(x, known[token]) for token, x in a.top if token in known and x >= least]


def factor_of(pairs: Sequence[list[tuple[float, float]]], within: float) -> float:
    """The factor f with B = f A + c at nearly all places; 1 if there is none, or rounding explains it.

    It is the median of the places' slopes by least squares, over tokens that both name.
    """
    slopes = [slope for pair in pairs if (slope := slope_of(pair)) is not None]
    if not slopes:
        return 1.0
    factor = median(slopes)
    if abs(factor - 1) < SURELY:
        return 1.0
    fitting = sum(spread(pair, factor) <= 2 * within for pair in pairs if len(pair) > 2)
    better = sum(spread(pair, factor) < spread(pair, 1.0) for pair in pairs if len(pair) > 2)
    return factor if min(fitting, better) >= MOSTLY * len(slopes) else 1.0


def slope_of(pair: list[tuple[float, float]]) -> float | None:
    """The slope of B over A at one place; None for fewer than three tokens, or if A gives all the same."""
    if len(pair) < 3:
        return None
    xs, ys = zip(*pair, strict=True)
    x, y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    square = math.fsum((one - x) ** 2 for one in xs)
    return math.fsum((u - x) * (v - y) for u, v in pair) / square if square > 1e-6 else None


def spread(pair: list[tuple[float, float]], factor: float) -> float:
    """How far B minus `factor` times A varies over the tokens of one place."""
    rests = [b - factor * a for a, b in pair]
    return max(rests) - min(rests)


def verdict(a: Reading, b: Reading, pair: list[tuple[float, float]], factor: float, within: float) -> str:
    """One of VERDICTS."""
    if a.logprob is None or b.logprob is None:
        return "unknown"
    differences = [y - x for x, y in pair] + [b.logprob - a.logprob]
    if max(map(abs, differences)) <= within:
        return "tie" if flips(a, b) else "rounding"
    if factor != 1.0 and pair:
        return "temperature" if spread(pair, factor) <= 2 * within else "other"
    shifted = len(differences) > 2 and max(differences) - min(differences) <= within
    return "renormalised" if shifted and min(map(abs, differences)) > within else "other"


def flips(a: Reading, b: Reading) -> bool:
    """Whether the most likely tokens differ, where both are known."""
    return bool(a.top and b.top) and a.top[0][0] != b.top[0][0]


def margin(a: Reading, b: Reading) -> float | None:
    """The smallest lead of a most likely token over the second."""
    leads = [one.top[0][1] - one.top[1][1] for one in (a, b) if len(one.top) > 1]
    return min(leads, default=None)


def largest_first(places: Sequence[Place]) -> list[Place]:
    """The places with a difference, the largest first."""
    known = [one for one in places if one.difference is not None]
    return sorted(known, key=lambda one: -abs(one.difference))


def could_flip(found: Twin) -> list[Place]:
    """Places where the engines agree on the most likely token by a lead that rounding could turn over."""
    within = found.rounding.median
    return [one for one in found.places if not one.flips and one.margin is not None and one.margin <= within]


def too_large(found: Twin) -> bool:
    """Whether the differences are larger in the median than rounding makes them, though none is alone."""
    sizes = [abs(one.difference) for one in found.places if one.difference is not None]
    return len(sizes) >= 8 and median(sizes) > found.rounding.median
