"""Places in a run at which a lesson stops, found by what happened there and never by a fixed position.

A finder takes the lanes of a run (`{number: Reading}`) and its own arguments and returns a Place, or None if
this run has none. `values` are the numbers and tokens of the place, for use in the lesson's sentences.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from decoders.trace.events import Distribution
from explorer.lessons.facts import LN2, Reading, probability_of
from visualizers.analysis.first_difference import pair

Lanes = dict[int, Reading]


@dataclass
class Place:
    """The step (0-based) of `lane` after which the event is visible. `nodes`: the tokens to outline, by lane;
    the first can be inspected.
    """

    lane: int
    step: int
    nodes: dict[int, list[int]] = field(default_factory=dict)
    values: dict[str, float | int | str | None] = field(default_factory=dict)


PLACES: dict[str, Callable] = {}


def place(function: Callable) -> Callable:
    """Registers a finder under its name."""
    PLACES[function.__name__] = function
    return function


@place
def start(lanes: Lanes, lane: int = 1) -> Place | None:
    """The first committed token."""
    own = lanes[lane]
    firsts = {n: [other.tokens[0].node] for n, other in lanes.items() if other.tokens}
    return Place(lane, own.born[firsts[lane][0]], firsts) if lane in firsts else None


@place
def end(lanes: Lanes, lane: int = 1) -> Place | None:
    """The last step of the longest lane, if every lane has written something."""
    if not all(own.tokens for own in lanes.values()):
        return None
    return Place(lane, max(own.last for own in lanes.values()))


@place
def first_divergence(lanes: Lanes, lane: int, other: int) -> Place | None:
    """Where two lanes first wrote different tokens; `p` and `p_other` are the target's, before processors."""
    a, b = lanes[lane], lanes[other]
    compared = pair(a.tokens, b.tokens, (lane, other))
    if compared["position"] is None:
        return None
    x, y = a.tokens[compared["same"]], b.tokens[compared["same"]]
    p, p_other = (math.exp(t.logprob) if t.logprob is not None else None for t in (x, y))
    values = {
        "position": compared["position"],
        "same": compared["same"],
        "before": a.before(x.node),
        "token": x.text,
        "other_token": y.text,
        "p": p,
        "p_other": p_other,
        "rank": x.rank or 99,
        "rank_other": y.rank or 99,
        "entropy": bits(x.entropy),
        "u": b.draws.get(y.node),
        "leave": None if p is None else 1 - p,
    }
    return Place(lane, max(a.born[x.node], b.born[y.node]), {lane: [x.node], other: [y.node]}, values)


@place
def lowest_entropy(lanes: Lanes, lane: int) -> Place | None:
    """Where the target's entropy was lowest."""
    return by_entropy(lanes, lane, min)


@place
def highest_entropy(lanes: Lanes, lane: int) -> Place | None:
    """Where the target's entropy was highest."""
    return by_entropy(lanes, lane, max)


def by_entropy(lanes: Lanes, lane: int, best: Callable) -> Place | None:
    """The committed token with the lowest or highest entropy; the first one in a tie."""
    own = lanes[lane]
    known = [(t.entropy, i) for i, t in enumerate(own.tokens) if t.entropy is not None and len(t.top) > 1]
    if not known:
        return None
    entropy = best(e for e, _ in known)
    index = next(i for e, i in known if e == entropy)
    token = own.tokens[index]
    (first, p), (second, p_second) = ((int(t), math.exp(x)) for t, x in token.top[:2])
    values = {
        "position": index + 1,
        "before": own.before(token.node),
        "token": token.text,
        "entropy": bits(entropy),
        "choices": 2 ** bits(entropy),
        "rank": token.rank or 99,
        "first": own.word(first),
        "p": p,
        "second": own.word(second),
        "p_second": p_second,
    }
    return Place(lane, own.born[token.node], {lane: [token.node]}, values)


@place
def cut(lanes: Lanes, lane: int, max_left: int = 8) -> Place | None:
    """The position of highest entropy among those at which the processors kept at most `max_left` tokens."""
    own, best = lanes[lane], None
    for index, token in enumerate(own.tokens):
        processed, target = own.offer(token.node, "processed"), own.offer(token.node)
        if processed is None or target is None or processed.rest > 1e-6 or len(processed.top) > max_left:
            continue
        if best is None or target.entropy > best[1].entropy:
            best = (index, target, processed)
    return None if best is None else cut_place(own, lane, *best)


def cut_place(own: Reading, lane: int, index: int, target: Distribution, processed: Distribution) -> Place:
    """The tokens that were kept at a position, and their share of the target's probability mass."""
    kept = {int(token) for token, _ in processed.top}
    mass = math.fsum(math.exp(x) for token, x in target.top if int(token) in kept)
    token = own.tokens[index]
    values = {
        "position": index + 1,
        "before": own.before(token.node),
        "token": token.text,
        "kept": len(kept),
        "mass": mass,
        "removed": 1 - mass,
        "entropy": bits(target.entropy),
        "left": bits(processed.entropy),
        "words": ", ".join(f"“{own.word(int(t))}”" for t, _ in processed.top[:3]),
    }
    return Place(lane, own.born[token.node], {lane: [token.node]}, values)


@place
def forbidden(lanes: Lanes, lane: int) -> Place | None:
    """Where the processors removed the target's most likely token."""
    own = lanes[lane]
    for index, token in enumerate(own.tokens):
        processed, target = own.offer(token.node, "processed"), own.offer(token.node)
        if (
            processed is None
            or target is None
            or probability_of(processed, int(target.top[0][0])) is not None
        ):
            continue
        wanted, p = int(target.top[0][0]), math.exp(target.top[0][1])
        values = {
            "position": index + 1,
            "before": own.before(token.node),
            "wanted": own.word(wanted),
            "p_wanted": p,
            "token": token.text,
            "p": math.exp(token.logprob) if token.logprob is not None else None,
        }
        return Place(lane, own.born[token.node], {lane: [token.node]}, values)
    return None


def bits(nats: float | None) -> float | None:
    """An entropy in bits."""
    return None if nats is None else nats / LN2
