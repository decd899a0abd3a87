"""What if the draft had another shape? Acceptance recomputed from the p and q that a trace has stored.

No model runs: a position of the text is known if the trace has the draft's distribution there. At temperature
0 with a draft model the answer is exact, as neither the text nor the draft's best tokens depend on the shape;
positions at which the run never asked the draft leave a range. Otherwise it is an estimate, as if the text
stayed the same.
"""

import math
from dataclasses import dataclass

from decoders.refusal import Refusal
from decoders.trace.events import Commit, Distribution, Forward
from decoders.trace.trace import Trace
from visualizers.analysis.lane_stats import LaneFacts

DEEPEST = 16  # levels of the longest chain tried
MAX_LEVELS, MAX_WIDTH = 32, 8  # of a shape that is asked for; a trace names eight tokens of each distribution
UNUSABLE = (
    "The trace of this lane does not hold what a draft model offered at each position, so other shapes "
    "cannot "
    "be recomputed from it. Run a strategy that drafts with a draft model, for example Speculative decoding."
)


@dataclass
class Place:
    """One token of the text. `rank`: its rank in the draft's distribution there (1: the draft's top-1, 0: not
    among those named), None if the draft was not asked there, as is `sure`, the top-1's probability.
    `offers`: token -> probability under target and draft, if the lane drew (else None).
    """

    rank: int | None
    sure: float | None
    offers: tuple[dict[int, float], dict[int, float]] | None


def what_if(trace: Trace, count: int | None, widths: list[int], stop_below: float = 0.0) -> dict:
    """Other drafts for the text of the first `count` steps: chains of 1 to 16, and a tree of `widths`.

    stop_below: drafting stops after a position where the draft's top-1 has a lower probability than this.

    sentence   what the numbers are, or why there are none
    exact      whether they are exact, not estimates; places, known: tokens of the text, and the known ones
    cost       seconds of a draft forward in units of a target forward, measured (None: none was timed)
    run        {rounds, tokens, deepest}: what the lane itself took, and how deep it drafted at most
    chains     a row each for 1, 2, ... levels; own: the same for `widths`. A row is {widths, size, rounds,
               tokens, speedup}: size is drafted tokens per round at most; rounds, tokens and speedup
               are [low, high]

    Raises Refusal with one sentence for unusable widths or an unusable threshold.
    """
    check(widths, stop_below)
    path, taken = places(trace, count)
    known = sum(place.rank is not None for place in path)
    if not known:
        return {"sentence": UNUSABLE, "known": 0}
    exact = trace.parameters.get("temperature") == 0.0 and "draft" in trace.models
    cost = forward_cost(trace, count)

    tails = 0.0 if exact else agreement(path, first_tests(trace, count))

    def row(shape: list[int]) -> dict:
        if exact:
            low, high = rounds_exactly(path, shape, stop_below)
        else:
            low = high = expected_rounds(path, shape, stop_below, tails)
        tokens = [len(path) / high, len(path) / low]
        paid = None if cost is None else 1 + cost * len(shape)
        return {
            "widths": shape,
            "size": size(shape),
            "rounds": [low, high],
            "tokens": tokens,
            "speedup": None if paid is None else [number / paid for number in tokens],
        }

    return {
        "sentence": basis(exact, known, len(path)),
        "exact": exact,
        "places": len(path),
        "known": known,
        "cost": cost,
        "run": {"rounds": taken, "tokens": len(path) / taken, "deepest": deepest_draft(trace, count)},
        "chains": [row([1] * depth) for depth in range(1, DEEPEST + 1)],
        "own": row(widths),
    }


def fastest(chains: list[dict]) -> dict | None:
    """The chain, of rows of `what_if`, that is faster than all others wherever in their ranges the speeds
    are; None where ranges overlap or no forward was timed.
    """
    if any(row["speedup"] is None for row in chains):
        return None
    best = max(chains, key=lambda row: row["speedup"][0])
    sure = all(row["speedup"][1] < best["speedup"][0] for row in chains if row is not best)
    return best if sure else None


def check(widths: list[int], stop_below: float) -> None:
    """Raises Refusal with one sentence if no draft can have this shape."""
    usable = 1 <= len(widths) <= MAX_LEVELS and all(1 <= width <= MAX_WIDTH for width in widths)
    if not usable:
        raise Refusal(
            f"Write one to {MAX_LEVELS} whole numbers from 1 to {MAX_WIDTH}, the children of a node level "
            "by level: 3 2 1 1."
        )
    if not 0.0 <= stop_below <= 1.0:
        raise Refusal(f"Stop below takes a probability from 0 to 1, not {stop_below:g}.")


def basis(exact: bool, known: int, number: int) -> str:
    """How exact the numbers are, in a sentence."""
    asked = f"The draft's distribution is known at {known} of {number} positions of the text."
    if not exact:
        return (
            "Estimates: they take this text as given, although another draft would have led to another text. "
            f"{asked} Elsewhere the mean of those positions is taken. One drafted token is accepted with "
            "probability Σ min(p, q), one of several with the target's probability of the draft's top-k. "
            "Tokens missing from the trace are scaled so that this lane's own acceptance comes out right."
        )
    return f"Exact: greedy text does not depend on the draft. {asked}" + (
        " Where it is not known, the worst and the best case give a range." if known < number else ""
    )


def places(trace: Trace, count: int | None) -> tuple[list[Place], int]:
    """The tokens that the lane decoded, and the number of steps that wrote them."""
    facts, offers, taken = LaneFacts(trace, count), {}, 0
    for step in trace.steps[:count]:
        taken += any(isinstance(event, Commit) for event in step.events)
        for event in step.events:
            if isinstance(event, Distribution) and event.level is None:
                offers[event.node, event.view] = event
    taken -= bool(facts.given)
    path = []
    for token in facts.tokens[facts.given :]:
        above = facts.nodes.parent[token.node]
        q, p = offers.get((above, "draft")), offers.get((above, "processed")) or offers.get((above, "target"))
        if q is None:
            path.append(Place(None, None, None))
            continue
        named = [int(one) for one, _ in q.top]
        rank = named.index(token.token) + 1 if token.token in named else 0
        both = None if p is None else (probs(p.top), probs(q.top))
        path.append(Place(rank, math.exp(q.top[0][1]), both))
    return path, taken


def probs(top: list[list[float]]) -> dict[int, float]:
    """Token -> probability, most likely first."""
    return {int(token): math.exp(logprob) for token, logprob in top}


def deepest_draft(trace: Trace, count: int | None) -> int:
    """The depth of the lane's deepest draft; 0 if it drafted nothing."""
    rounds = LaneFacts(trace, count).rounds
    return max((drafted.depth for made in rounds for drafted in made.drafted), default=0)


def forward_cost(trace: Trace, count: int | None) -> float | None:
    """Mean seconds of a draft forward over those of a target's verifying one; None if there were none."""
    seconds: dict[str, list[float]] = {"draft": [], "target": []}
    for step in trace.steps[:count]:
        for event in step.events:
            if isinstance(event, Forward) and event.kind in ("draft", "verify"):
                seconds["draft" if event.kind == "draft" else "target"].append(event.seconds)
    if not all(seconds.values()) or not sum(seconds["target"]):
        return None
    draft, target = (sum(own) / len(own) for own in seconds.values())
    return draft / target


def size(widths: list[int]) -> int:
    """Drafted tokens of a tree whose nodes have this many children, level by level."""
    return sum(math.prod(widths[: depth + 1]) for depth in range(len(widths)))


def deepest(path: list[Place], start: int, widths: list[int]) -> int:
    """How deep a round that begins at `start` drafts: the target's own token must still fit."""
    return min(len(widths), len(path) - start - 1)


def rounds_exactly(path: list[Place], widths: list[int], stop_below: float) -> tuple[int, int]:
    """The fewest and the most rounds that could have written a greedy text.

    From the end of the text backwards; every place is in exactly one round, so the cases of unknown places
    are independent. Equal numbers mean that nothing unknown mattered.
    """
    fewest, slowest = [0] * (len(path) + 1), [0] * (len(path) + 1)
    for start in reversed(range(len(path))):
        ends = ends_of(path, start, widths, stop_below)
        fewest[start] = 1 + min(fewest[end] for end in ends)
        slowest[start] = 1 + max(slowest[end] for end in ends)
    return fewest[0], slowest[0]


def ends_of(path: list[Place], start: int, widths: list[int], stop_below: float) -> set[int]:
    """Where the round that begins at `start` may end (the next one begins there)."""
    ends, room = set(), deepest(path, start, widths)
    for depth in range(room):
        place = path[start + depth]
        if place.rank is None:
            ends.add(start + depth + 1)  # if it fails
            if stop_below > 0.0:
                ends.add(start + depth + 2)  # if it passes, and the draft was not sure
            continue
        if not 1 <= place.rank <= widths[depth]:
            return ends | {start + depth + 1}
        if place.sure < stop_below:
            return ends | {start + depth + 2}
    return ends | {start + room + 1}


def first_tests(trace: Trace, count: int | None) -> list[bool]:
    """Whether the drafted tokens that were tried first at their place passed, test by test."""
    rounds = LaneFacts(trace, count).rounds
    return [drafted.accepted for made in rounds for drafted in made.tests if drafted.rank == 1]


def agreement(path: list[Place], passed: list[bool]) -> float:
    """How far the unnamed mass of p and q agrees, from 0 to 1: chosen so that the mean pass probability of
    one drawn token over the known places equals the share of `passed` tests.
    """
    offers = [place.offers for place in path if place.offers is not None]
    if not offers or not passed:
        return 0.0
    low, high = (
        sum(pass_probability(*own, 1, tails) for own in offers) / len(offers) for tails in (0.0, 1.0)
    )
    if high <= low:
        return 0.0
    return min(1.0, max(0.0, (sum(passed) / len(passed) - low) / (high - low)))


def expected_rounds(path: list[Place], widths: list[int], stop_below: float, tails: float) -> float:
    """Rounds for the whole text if each place passes with its own probability, independent of the others."""
    passes = {width: passing(path, width, tails) for width in set(widths)}
    expected = [0.0] * (len(path) + 1)
    for start in reversed(range(len(path))):
        reached, expected[start] = 1.0, 1.0
        room = deepest(path, start, widths)
        for depth in range(room):
            here = passes[widths[depth]][start + depth]
            expected[start] += reached * (1 - here) * expected[start + depth + 1]
            reached *= here
            sure = path[start + depth].sure
            if sure is not None and sure < stop_below:
                room = depth + 1
                break
        expected[start] += reached * expected[start + room + 1]
    return expected[0]


def passing(path: list[Place], width: int, tails: float) -> list[float]:
    """Of each place, the probability that one of `width` drafted tokens passes; the mean where unknown."""
    known = [
        None if place.offers is None else pass_probability(*place.offers, width, tails) for place in path
    ]
    given = [one for one in known if one is not None]
    mean = sum(given) / len(given) if given else 0.0
    return [mean if one is None else one for one in known]


def pass_probability(p: dict[int, float], q: dict[int, float], width: int, tails: float) -> float:
    """For one token drawn from q: the sum of min(p, q); for several: the mass under p of the `width` most
    likely of q.

    tails: the share of the unnamed mass that counts as agreeing, relative to the most that can.
    """
    if width == 1:
        named = sum(min(p[token], q[token]) for token in p.keys() & q.keys())
        unnamed = min(1 - named, max(0.0, 2 - sum(p.values()) - sum(q.values())))
    else:
        likeliest = list(q)[:width]
        named = sum(p.get(token, 0.0) for token in likeliest)
        missing = sum(token not in p for token in likeliest)
        unnamed = min(max(0.0, 1 - sum(p.values())), missing * min(p.values(), default=1.0))
    return min(1.0, named + tails * unnamed)
