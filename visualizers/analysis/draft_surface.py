"""Which draft length, and which stop probability, would have been fastest, computed from one run whose drafts
were at least that long.

A shorter draft of the same round is its beginning, so what it drafts and gains is known, not estimated. The
beginnings of rounds are taken as given, although a shorter draft would have begun its next rounds elsewhere.
The seconds of a verification are interpolated linearly between those of one token and those of the longest
draft.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from visualizers.analysis.draft_diagnosis import Length
from visualizers.analysis.lane_stats import LaneFacts

STOPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RESAMPLES, INSIDE = 400, 0.95


@dataclass(frozen=True)
class Round:
    """A draft as it was sent to the target: the draft's probability of each of its tokens, in order, and how
    many of them were accepted.
    """

    sure: tuple[float, ...]
    accepted: int


@dataclass(frozen=True)
class Cost:
    """Median seconds: of drafting one token, of the target reading one token, and of it verifying a draft of
    `longest` tokens.
    """

    draft: float
    plain: float
    verify: float
    longest: int

    def round(self, drafted: int) -> float:
        """The seconds of a round that drafts so many tokens."""
        return drafted * self.draft + self.plain + (self.verify - self.plain) * drafted / self.longest


@dataclass(frozen=True)
class Surface:
    """speed[k][s]: of drafts of at most k + 1 tokens that stop after one below STOPS[s], over plain decoding;
    tokens: the same, tokens per round; best: (k, s) of the fastest; gain: its speed over that of `own` (a
    length without a stop probability), with an interval from resampled rounds.
    """

    rounds: int
    cost: Cost
    speed: list[list[float]]
    tokens: list[list[float]]
    best: tuple[int, int]
    own: int
    gain: float
    low: float
    high: float

    @property
    def length(self) -> Length:
        """The length of the own drafts against the best one."""
        k, s = self.best
        return Length(self.own, k + 1, STOPS[s], self.gain, self.low, self.high)


def surface(rounds: Sequence[Round], cost: Cost, own: int) -> Surface | None:
    """The surface over all lengths up to the longest; None if no round drafted that far."""
    whole = [one for one in rounds if len(one.sure) == cost.longest]
    if len(whole) < 2:
        return None
    cells = {
        (k, s): [of(one, k + 1, STOPS[s]) for one in whole]
        for k in range(cost.longest)
        for s in range(len(STOPS))
    }
    everything = range(len(whole))

    def speed(cell: tuple[int, int], chosen: Sequence[int]) -> float:
        gained = sum(cells[cell][at][1] for at in chosen)
        return gained * cost.plain / sum(cost.round(cells[cell][at][0]) for at in chosen)

    best = max(cells, key=lambda cell: speed(cell, everything))
    mine = (min(own, cost.longest) - 1, 0)
    chance, ratios = random.Random(0), []
    for _ in range(RESAMPLES):
        chosen = chance.choices(everything, k=len(whole))
        ratios.append(speed(best, chosen) / speed(mine, chosen))
    ratios.sort()
    outside = round((1 - INSIDE) / 2 * RESAMPLES)
    ks, ss = range(cost.longest), range(len(STOPS))
    return Surface(
        len(whole),
        cost,
        [[speed((k, s), everything) for s in ss] for k in ks],
        [[sum(gained for _, gained in cells[k, s]) / len(whole) for s in ss] for k in ks],
        best,
        mine[0] + 1,
        speed(best, everything) / speed(mine, everything),
        ratios[outside],
        ratios[-1 - outside],
    )


def of(one: Round, longest: int, stop: float) -> tuple[int, int]:
    """What a shorter draft of a round would have drafted, and gained with the target's own token."""
    drafted = next((n for n, sure in enumerate(one.sure[:longest], 1) if sure < stop), longest)
    return drafted, min(one.accepted, drafted) + 1


def rounds_of(trace: Trace) -> list[Round]:
    """The chains that a lane sent to its target; those without the draft's probabilities are left out."""
    found = []
    for made in LaneFacts(trace).rounds:
        sure = [drafted.probability for drafted in made.drafted]
        if None not in sure:
            found.append(Round(tuple(sure), sum(drafted.accepted for drafted in made.drafted)))
    return found


def cost_of(drafting: Sequence[Trace], plain: Sequence[Trace]) -> Cost | None:
    """Measured costs of lanes that drafted, and of lanes that decoded token by token; None without times."""
    longest = max((len(one.sure) for trace in drafting for one in rounds_of(trace)), default=0)
    drafts = [one for trace in drafting for one in seconds(trace, "draft")]
    verified = [one for trace in drafting for one in seconds(trace, "verify")]
    decoded = [one for trace in plain for one in seconds(trace, "decode")]
    tokens = sum(len(one.sure) for trace in drafting for one in rounds_of(trace))
    if not (longest and verified and decoded and tokens and sum(decoded)):
        return None
    alone, per_token = median(decoded), median(drafts) * len(drafts) / tokens if drafts else 0.0
    return Cost(per_token, alone, max(alone, median(verified)), longest)


def seconds(trace: Trace, kind: str) -> list[float]:
    """The seconds of a lane's forwards of one kind."""
    return [
        event.seconds
        for step in trace.steps
        for event in step.events
        if isinstance(event, Forward) and event.kind == kind
    ]
