"""Places in lanes whose text loops, and facts inside a loop and outside."""

import math

from decoders.trace.repetition import Loop
from explorer.lessons.facts import Reading, fact, ratio
from explorer.lessons.stops import Lanes, Place, place
from visualizers.analysis.loops_and_thinking import IN_LOOP, OUTSIDE, Report, Row, loops_and_thinking

SIDES = {"in": IN_LOOP, "out": OUTSIDE}
MAX_QUOTED = 16  # tokens of a loop that a sentence quotes


def report_of(own: Reading) -> Report:
    """The spans and loops of a lane's text."""
    return loops_and_thinking(own.trace)


@place
def loop(lanes: Lanes, lane: int, whole: bool = False) -> Place | None:
    """The longest loop, at the token with which its first copy is complete, or its last whole one. `p_first`,
    `p_second`, `p_last`: mean probabilities of its tokens when they were new, in the first copy, and in the
    last whole one; `stays`: that of the last whole copy.
    """
    own = lanes[lane]
    found = report_of(own).longest
    if found is None:
        return None
    first, second = (span_nodes(own, found, copy) for copy in (0, 1))
    values = {
        "phrase": quoted(own, found),
        "period": found.period,
        "copies": found.copies,
        "first": found.first + 1,
        "second": found.begins + 1,
        "p_first": mean_p(own, found, 0),
        "p_second": mean_p(own, found, 1),
        "p_last": mean_p(own, found, found.copies - 1),
        "stays": math.exp(logprob_of(own, found, found.copies - 1)),
        "leaves": 1 - math.exp(logprob_of(own, found, found.copies - 1)),
    }
    shown = span_nodes(own, found, found.copies - 1) if whole else [*first, *second]
    return Place(lane, own.last if whole else own.born[second[-1]], {lane: shown}, values)


@place
def loop_exit(lanes: Lanes, lane: int) -> Place | None:
    """The token of the first copy at which the loop is the most likely to be left; `other`: the most likely
    token besides the loop's own, with its probability, there and at the same token of the last whole copy.
    """
    own = lanes[lane]
    found = report_of(own).longest
    if found is None:
        return None
    places = range(found.begins, found.begins + found.period)
    at = min(places, key=lambda place: own.tokens[place].logprob or 0.0)
    late = at + (found.copies - 2) * found.period
    token = own.tokens[at]
    beside = [(t, p) for t, p in token.top if int(t) != token.token]
    if not beside or token.logprob is None:
        return None
    last = {int(t): p for t, p in own.tokens[late].top}
    other = int(beside[0][0])
    values = {
        "position": at + 1,
        "last_position": late + 1,
        "before": own.before(token.node),
        "token": token.text,
        "p": math.exp(token.logprob),
        "other": own.word(other),
        "p_other": math.exp(beside[0][1]),
        "p_last": math.exp(own.tokens[late].logprob or 0.0),
        "p_other_last": math.exp(last[other]) if other in last else None,
    }
    return Place(lane, own.born[token.node], {lane: [token.node]}, values)


def span_nodes(own: Reading, found: Loop, copy: int) -> list[int]:
    """The nodes of a copy; 0 is what is copied."""
    start = found.first + copy * found.period
    return [token.node for token in own.tokens[start : start + found.period]]


def logprob_of(own: Reading, found: Loop, copy: int) -> float:
    """The log-probability of a copy."""
    start = found.first + copy * found.period
    return math.fsum(token.logprob or 0.0 for token in own.tokens[start : start + found.period])


def mean_p(own: Reading, found: Loop, copy: int) -> float:
    """The geometric mean of a copy's probabilities."""
    return math.exp(logprob_of(own, found, copy) / found.period)


def quoted(own: Reading, found: Loop) -> str:
    """What the loop writes, as plain text."""
    tokens = own.tokens[found.first : found.begins][:MAX_QUOTED]
    text = b"".join(own.trace.vocabulary.get(token.token, b"") for token in tokens)
    more = " …" if found.period > MAX_QUOTED else ""
    return " ".join(text.decode("utf-8", "replace").split()) + more


@fact
def loop_tokens(lanes: Lanes, lane: int) -> int:
    """How many tokens of the text are copies in a loop."""
    return sum(one.tokens for one in report_of(lanes[lane]).rows if one.name == IN_LOOP)


@fact
def loop_acceptance(lanes: Lanes, lane: int, side: str) -> float | None:
    """Accepted over drafted tokens that stood in a loop ("in") or outside ("out")."""
    own = side_of(lanes, lane, side)
    return own and own.acceptance


@fact
def loop_drafted(lanes: Lanes, lane: int, side: str) -> int:
    """How many drafted tokens stood there."""
    own = side_of(lanes, lane, side)
    return own.drafted if own else 0


@fact
def loop_entropy(lanes: Lanes, lane: int, side: str) -> float | None:
    """The target's mean entropy there, in bits."""
    own = side_of(lanes, lane, side)
    return own and own.entropy


@fact
def loop_per_round(lanes: Lanes, lane: int, side: str) -> float | None:
    """Tokens per round of the rounds that began there: accepted ones and the target's own."""
    own = lanes[lane]
    report = report_of(own)
    copies = {at for one in report.loops for at in range(one.begins, one.stop)}
    begun = [
        made
        for made in own.facts.rounds
        if (own.position(made.drafted[0].node) - 1 in copies) is (side == "in")
    ]
    gained = sum(sum(one.accepted for one in made.drafted) + (made.own is not None) for made in begun)
    return ratio(gained, len(begun))


def side_of(lanes: Lanes, lane: int, side: str) -> Row | None:
    """What was measured in loops or outside; None where the text has no loop."""
    rows = report_of(lanes[lane]).rows
    return next((one for one in rows if one.name == SIDES[side]), None)
