"""What is wrong with a draft, from what it guessed at the places of some texts.

At each place the draft's distribution q is compared with the target's p: their overlap, the sum of min(p, q),
is the probability that a token drawn from q is accepted. Each cause leaves a trace of its own: a draft that
is shifted agrees with another place; one whose numbers mean other tokens is certain where its target is, but
of other tokens; noise agrees with no place more than with any other.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import correlation, fmean, stdev

SHIFTS = (-2, -1, 1, 2)
CLEARLY = 4.0  # standard errors
GAIN = 0.1  # of overlap, that another way of reading must bring before it counts as the cause
TOGETHER = 0.35  # correlation of the certainties of draft and target, from which on they read the same
FEW = 16  # places; with fewer nothing is said
SAME = 0.95  # mean overlap of two computations of one distribution, tails left out
NEARLY_NONE = 0.02  # share of drafted tokens
BELOW = 0.95  # share of a reference
WEAK = 0.4  # mean overlap below which a draft that is not broken is called weak
OFTEN, MOSTLY = 3, 0.6  # a guess stands for another token: seen so often, never right, and so often that one
MAPPED, DIFFERENT = 0.5, 4  # share of the places that such guesses must have, and how many of them
BIN = 32  # places of a bin of positions
PLACES = 6  # that a finding names
CONSTANT = 0.9  # share of places with one and the same guess, of a dummy draft


class Cause(StrEnum):
    """What can be wrong. The numbers of each are those of its `Finding`."""

    NUMERICS = "numerics"  # count of total places: no numbers, or all tokens equally likely
    SHIFTED = "shifted"  # shift: which token it guesses; value: overlap as it is; other: at that token
    # value: share of guesses that are right; other: of the judged places, those that a map explains; low: the
    # correlation of both certainties; shift: what must be added to the draft's numbers, 0: no one number
    MAP = "map"
    # The next four: value: overlap as it is; other: if it reads in the other way. Of a recorded engine they
    # are the overlap of its q with ours as it is, and if ours reads so.
    STATES = "states"  # shift: the other states are those of so many tokens later
    LAYERS = "layers"  # shift: the other layers are so many above, 0: the same in reverse order
    BOS = "bos"  # shift: 1: with the token that begins a text, -1: without it
    TEMPLATE = "template"  # in the draft's own chat template
    OTHER_DRAFT = "other draft"  # value: the overlap of a recorded engine's q with ours
    # at: the position from which on it fails, 0: a long context; value: overlap before; other: from there on
    WINDOW = "window"
    DUMMY = "dummy"  # as WINDOW; count of total places there have one and the same guess
    NOISE = "noise"  # value: overlap; other: that of unrelated places
    GREEDY = "greedy"  # count of total drafted tokens, at a temperature above 0, were certain
    # count of total tested tokens have a verdict that the exact test cannot give; with other: so many were
    # accepted, and it accepts `other` in the mean
    RELAXED = "relaxed"
    LENGTH = "length"  # value: the gain of the best length over this one, low to high; shift: that length
    WEAK = "weak"  # value: overlap
    REFERENCE = (
        "reference"  # value: tokens per round, low to high; other: the reference's; at: tokens drafted
    )
    REJECTED = "rejected"  # of counts alone: count of total drafted tokens were accepted, nearly none


@dataclass(frozen=True)
class Along:
    """What was guessed along one text. All lists have one entry per place: a token of the text after the
    first `first` ones. overlap: None where the draft does not guess. best, sure: the target's most likely
    token and its probability; knows: the probability of the text's own token; guess, q: those of the draft;
    broken: its row is no distribution, or all tokens are equally likely. Of the target's own writing only:
    shifted, for each of SHIFTS the overlap with the target's distribution so many places later; unrelated:
    with distributions of other places, in the mean.
    """

    name: str
    asks: str
    own: bool
    first: int
    tokens: Sequence[str]
    overlap: Sequence[float | None]
    best: Sequence[int]
    sure: Sequence[float]
    knows: Sequence[float]
    guess: Sequence[int | None]
    q: Sequence[float | None]
    broken: Sequence[bool]
    shifted: dict[int, Sequence[float | None]] = field(default_factory=dict)
    unrelated: Sequence[float | None] = ()


@dataclass(frozen=True)
class Probe:
    """The draft once more, reading in another way. cause: what is wrong if it is better so; shift: see Cause;
    overlap: one list per text of the target's own writing.
    """

    cause: Cause
    shift: int
    overlap: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Sampling:
    """How a recorded run tested its drafted tokens: of `drawn` tokens, drafted at a temperature above 0,
    `certain` had probability 1 under the draft; of `tested` ones, `relaxed` have a verdict that the exact
    test cannot give, the first at `places` (text, place). Of `unseen` ones the recording has p and q but not
    the uniform number: `accepted` passed, `expected` should in the mean, with this `variance`.
    """

    drawn: int = 0
    certain: int = 0
    tested: int = 0
    relaxed: int = 0
    unseen: int = 0
    accepted: int = 0
    expected: float = 0.0
    variance: float = 0.0
    places: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Length:
    """The length of the drafts against the best one: see `draft_surface`. gain: speed of the best setting
    over that of this run, with an interval; stop: its stop probability.
    """

    own: int
    best: int
    stop: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """A cause with its numbers; what each means is said at `Cause`. places: (text, place) that show it."""

    cause: Cause
    value: float = 0.0
    other: float = 0.0
    low: float = 0.0
    high: float = 0.0
    count: int = 0
    total: int = 0
    shift: int = 0
    at: int = 0
    places: tuple[tuple[int, int], ...] = ()


def diagnosis(
    texts: Sequence[Along],
    probes: Sequence[Probe] = (),
    sampling: Sampling = Sampling(),
    length: Length | None = None,
) -> list[Finding]:
    """What is wrong, the cause of most harm first; empty if nothing is.

    What explains a draft's failure leaves out what only follows from it: a shifted draft looks like noise.
    """
    found = [*numerics(texts)]
    reading = [*shifted(texts), *mapped(texts), *probed(texts, probes)]
    # the cause that would bring most
    reading.sort(key=lambda one: one.value - one.other)
    found += reading[:1]
    found += window(texts)
    if not found:
        found += noise(texts)
    found += drawn(sampling)
    if not found:
        found += weak(texts)
    return [*found, *too_long(length)]


def numerics(texts: Sequence[Along]) -> Iterator[Finding]:
    """Rows of the draft that are no distributions, or flat ones."""
    places = [(at, n) for at, text in enumerate(texts) for n, broken in enumerate(text.broken) if broken]
    if places:
        total = sum(len(text.tokens) for text in texts)
        yield Finding(Cause.NUMERICS, count=len(places), total=total, places=tuple(places[:PLACES]))


def shifted(texts: Sequence[Along]) -> Iterator[Finding]:
    """Whether the draft guesses another token than the next one."""
    for shift in SHIFTS:
        pairs = [
            (here, there, (at, n))
            for at, text in enumerate(texts)
            if text.own
            for n, (here, there) in enumerate(zip(text.overlap, text.shifted[shift], strict=True))
            if here is not None and there is not None
        ]
        if better([(here, there) for here, there, _ in pairs]):
            best = sorted(pairs, key=lambda one: one[0] - one[1])[:PLACES]
            here, there = (fmean(one[side] for one in pairs) for side in (0, 1))
            yield Finding(Cause.SHIFTED, here, there, shift=shift, places=tuple(one[2] for one in best))


def better(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether the second number of a pair is clearly larger than the first."""
    if len(pairs) < FEW:
        return False
    gains = [there - here for here, there in pairs]
    return fmean(gains) > max(GAIN, CLEARLY * stdev(gains) / math.sqrt(len(gains)))


def mapped(texts: Sequence[Along]) -> Iterator[Finding]:
    """Whether the draft's numbers stand for other tokens: each of its guesses then goes with one token of the
    target's, another one than itself.
    """
    pairs = [
        (guess, best, (at, n))
        for at, text in enumerate(texts)
        if text.own
        for n, (guess, best) in enumerate(zip(text.guess, text.best, strict=True))
        if guess is not None
    ]
    agree = fmean([guess == best for guess, best, _ in pairs] or [0.0])
    offset, shared = Counter(best - guess for guess, best, _ in pairs).most_common(1)[0] if pairs else (0, 0)
    if offset and shared > 8 and shared > MAPPED * len(pairs) * (1 - agree) and agree < WEAK:
        places = tuple(where for guess, best, where in pairs if best - guess == offset)
        yield Finding(Cause.MAP, agree, shared / len(pairs), shift=offset, places=places[:PLACES])
        return
    tokens = defaultdict(Counter)
    for guess, best, _ in pairs:
        tokens[guess][best] += 1
    together = certainty(texts)
    if together is None or together < TOGETHER or agree > WEAK:
        return
    often = {guess: found for guess, found in tokens.items() if found.total() >= OFTEN}
    strange = {
        guess
        for guess, found in often.items()
        if not found[guess] and max(found.values()) >= MOSTLY * found.total()
    }
    total, moved = (sum(often[guess].total() for guess in some) for some in (often, strange))
    if total >= FEW and len(strange) >= DIFFERENT and moved > MAPPED * total:
        places = tuple(where for guess, best, where in pairs if guess in strange)
        yield Finding(Cause.MAP, agree, moved / total, low=together, places=places[:PLACES])


def probed(texts: Sequence[Along], probes: Sequence[Probe]) -> Iterator[Finding]:
    """Whether the draft is clearly better when it reads in another way."""
    own = [(at, text) for at, text in enumerate(texts) if text.own]
    for probe in probes:
        pairs = [
            (here, there, (at, n))
            for (at, text), row in zip(own, probe.overlap, strict=True)
            for n, (here, there) in enumerate(zip(text.overlap, row, strict=True))
            if here is not None and there is not None
        ]
        if better([(here, there) for here, there, _ in pairs]):
            here, there = (fmean(one[side] for one in pairs) for side in (0, 1))
            best = sorted(pairs, key=lambda one: one[0] - one[1])[:PLACES]
            yield Finding(probe.cause, here, there, shift=probe.shift, places=tuple(one[2] for one in best))


def window(texts: Sequence[Along]) -> Iterator[Finding]:
    """Whether the draft fails from some position of a long text on."""
    for at, text in enumerate(texts):
        known = [(n, value) for n, value in enumerate(text.overlap) if value is not None]
        bins = [known[begin : begin + BIN] for begin in range(0, len(known), BIN)]
        bins = [own for own in bins if len(own) >= BIN // 2]
        if len(bins) < 4:
            continue
        means = [fmean(value for _, value in own) for own in bins]
        splits = [(fmean(means[:n]), fmean(means[n:]), n) for n in range(1, len(means))]
        before, after, cut = max(splits, key=lambda one: one[0] - one[1])
        if before < WEAK or after > before / 2:
            continue
        first = bins[cut][0][0]
        guesses = Counter(text.guess[n] for n in range(first, len(text.guess)))
        token, count = guesses.most_common(1)[0]
        behind = len(text.guess) - first
        cause = Cause.DUMMY if count >= CONSTANT * behind else Cause.WINDOW
        worst = sorted(range(first, len(text.tokens)), key=lambda n: text.overlap[n] or 0.0)[:PLACES]
        yield Finding(
            cause,
            before,
            after,
            count=count,
            total=behind,
            at=text.first + first + 1,
            places=tuple((at, n) for n in worst),
        )
        return


def noise(texts: Sequence[Along]) -> Iterator[Finding]:
    """Whether the draft agrees with a place no more than with any other."""
    pairs = [
        (here, there, (at, n))
        for at, text in enumerate(texts)
        if text.own
        for n, (here, there) in enumerate(zip(text.overlap, text.unrelated, strict=True))
        if here is not None and there is not None
    ]
    if len(pairs) < FEW:
        return
    here, there = (fmean(one[side] for one in pairs) for side in (0, 1))
    gains = [one - other for one, other, _ in pairs]
    if fmean(gains) < CLEARLY * stdev(gains) / math.sqrt(len(gains)):
        sure = sorted(pairs, key=lambda one: -texts[one[2][0]].sure[one[2][1]])[:PLACES]
        places, together = tuple(one[2] for one in sure), certainty(texts)
        if together is not None and together >= TOGETHER:  # it has read the text, and means other tokens
            yield Finding(Cause.MAP, low=together, places=places)
        else:
            yield Finding(Cause.NOISE, here, there, places=places)


def certainty(texts: Sequence[Along]) -> float | None:
    """The correlation of the highest probabilities of draft and target over the target's own writing; None
    for few places, or if one of them is the same everywhere.
    """
    pairs = [
        (q, sure)
        for text in texts
        if text.own
        for q, sure in zip(text.q, text.sure, strict=True)
        if q is not None
    ]
    if len(pairs) < FEW or min(len({round(one[side], 9) for one in pairs}) for side in (0, 1)) < 2:
        return None
    return correlation(*zip(*pairs, strict=True))


def weak(texts: Sequence[Along]) -> Iterator[Finding]:
    """Whether a draft that is not broken agrees little with its target."""
    values = [value for text in texts if text.own for value in text.overlap if value is not None]
    if values and fmean(values) < WEAK:
        yield Finding(Cause.WEAK, fmean(values), count=len(values))


def engine_differs(agreement: float, ways: Sequence[tuple[Cause, int, float]]) -> Iterator[Finding]:
    """What a recorded engine does differently. agreement: the mean overlap of its q with ours; ways: (cause,
    shift, the same if ours reads in another way).
    """
    if agreement > SAME:
        return
    best = max(ways, key=lambda one: one[2], default=None)
    if best is not None and best[2] > SAME:
        yield Finding(best[0], agreement, best[2], shift=best[1])
    else:
        yield Finding(Cause.OTHER_DRAFT, agreement)


def of_counts(drafted: int, accepted: int) -> list[Finding]:
    """What counts alone say."""
    if drafted >= FEW and accepted < NEARLY_NONE * drafted:
        return [Finding(Cause.REJECTED, count=accepted, total=drafted)]
    return []


def of_long_context(drafted: int, accepted: int, long_drafted: int, long_accepted: int) -> list[Finding]:
    """What counts say of a long context, beside those of short ones."""
    if min(drafted, long_drafted) < FEW or not accepted:
        return []
    short, long = accepted / drafted, long_accepted / long_drafted
    error = math.sqrt(short * (1 - short) * (1 / drafted + 1 / long_drafted))
    if long < short / 2 and short - long > CLEARLY * error:
        return [Finding(Cause.WINDOW, short, long)]
    return []


def below(reference: float, drafted: int, mean: float, low: float, high: float) -> list[Finding]:
    """Whether tokens per round, with their interval, are clearly below a reference for drafts of as many
    tokens.
    """
    if high < BELOW * reference:
        return [Finding(Cause.REFERENCE, mean, reference, low, high, at=drafted)]
    return []


def drawn(sampling: Sampling) -> Iterator[Finding]:
    """Whether drafts were taken greedily where they should be drawn, or tests were relaxed."""
    if sampling.relaxed:
        yield Finding(
            Cause.RELAXED, count=sampling.relaxed, total=sampling.tested, places=sampling.places[:PLACES]
        )
    elif sampling.accepted - sampling.expected > max(1.0, CLEARLY * math.sqrt(sampling.variance)):
        yield Finding(Cause.RELAXED, other=sampling.expected, count=sampling.accepted, total=sampling.unseen)
    if sampling.drawn >= FEW and sampling.certain >= CONSTANT * sampling.drawn:
        yield Finding(Cause.GREEDY, count=sampling.certain, total=sampling.drawn)


def too_long(length: Length | None) -> Iterator[Finding]:
    """Whether the drafts are longer than pays."""
    if length is not None and length.best < length.own and length.low > 1.0 and length.gain > 1.05:
        yield Finding(
            Cause.LENGTH, length.gain, low=length.low, high=length.high, shift=length.best, at=length.own
        )


def mean_overlap(text: Along) -> float | None:
    """The mean overlap along a text; None if the draft guesses nowhere."""
    values = [value for value in text.overlap if value is not None]
    return fmean(values) if values else None


def interval(texts: Sequence[Along]) -> tuple[float, float, float] | None:
    """The mean overlap over the target's own writing, with a 95 % interval; None without."""
    values = [value for text in texts if text.own for value in text.overlap if value is not None]
    if len(values) < 2:
        return None
    mean, half = fmean(values), 1.96 * stdev(values) / math.sqrt(len(values))
    return mean, max(0.0, mean - half), min(1.0, mean + half)
