"""Places in a run that a lesson stops at, found by what happened there and never by a fixed position.

A finder takes the lanes of a run (`{number: Reading}`) and its own arguments and returns a Place, or None if
this run has none. `values` are the numbers and tokens of the place that the lesson's sentences may use.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from decoders.trace.events import Cell, Distribution, Verdict
from decoders.trace.number_format import compared, number
from explorer.lessons.facts import LN2, Reading, chance
from visualizers.analysis.first_difference import pair
from visualizers.scene.marks import probability

Lanes = dict[int, Reading]


@dataclass
class Place:
    """The step (0-based) after which the thing is seen, in `lane`; `nodes`: what to outline, by lane."""

    lane: int
    step: int
    nodes: dict[int, int] = field(default_factory=dict)
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
    firsts = {n: other.tokens[0].node for n, other in lanes.items() if other.tokens}
    return Place(lane, own.born[firsts[lane]], firsts) if lane in firsts else None


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
    found = pair(a.tokens, b.tokens, (lane, other))
    if found["position"] is None:
        return None
    x, y = a.tokens[found["same"]], b.tokens[found["same"]]
    p, p_other = (math.exp(t.logprob) if t.logprob is not None else None for t in (x, y))
    values = {
        "position": found["position"],
        "same": found["same"],
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
    return Place(lane, max(a.born[x.node], b.born[y.node]), {lane: x.node, other: y.node}, values)


@place
def most_certain(lanes: Lanes, lane: int) -> Place | None:
    """Where the target's entropy was lowest."""
    return by_entropy(lanes, lane, min)


@place
def least_certain(lanes: Lanes, lane: int) -> Place | None:
    """Where the target's entropy was highest."""
    return by_entropy(lanes, lane, max)


def by_entropy(lanes: Lanes, lane: int, best: Callable) -> Place | None:
    """The committed token with the lowest or highest entropy; the first of equals."""
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
    return Place(lane, own.born[token.node], {lane: token.node}, values)


@place
def first_repeat(lanes: Lanes, lane: int, n: int = 4) -> Place | None:
    """Where the text first repeats n tokens; `p_before` and `p`: their mean probabilities, then and now."""
    own, seen = lanes[lane], {}
    text = [t.token for t in own.tokens]
    for i in range(len(text) - n + 1):
        gram = tuple(text[i : i + n])
        if i - seen.setdefault(gram, i) >= n:
            return repeat(own, lane, seen[gram], i, n)
    return None


def repeat(own: Reading, lane: int, first: int, second: int, n: int) -> Place:
    """The place of a repetition, as long as it goes on."""
    text, length = [t.token for t in own.tokens], n
    while second + length < len(text) and text[first + length] == text[second + length]:
        length += 1
    again = own.tokens[second : second + length]
    values = {
        "phrase": phrase(own, first, length),
        "length": length,
        "first": first + 1,
        "second": second + 1,
        "p_before": mean_p(own.tokens[first : first + length]),
        "p": mean_p(again),
    }
    return Place(lane, own.born[again[-1].node], {lane: again[-1].node}, values)


def phrase(own: Reading, first: int, length: int) -> str:
    """Committed tokens as plain text, at most a dozen of them."""
    ids = [t.token for t in own.tokens[first : first + min(length, 12)]]
    text = b"".join(own.trace.vocabulary.get(t, b"") for t in ids).decode("utf-8", "replace")
    return " ".join(text.split()) + (" …" if length > 12 else "")


def mean_p(tokens: list) -> float:
    """The geometric mean of the tokens' probabilities: what each contributes to the text's probability."""
    return math.exp(math.fsum(t.logprob for t in tokens) / len(tokens))


@place
def first_verdict(lanes: Lanes, lane: int, status: str, doubted: bool = True) -> Place | None:
    """The first token with this verdict that was tested by p / q, and if `doubted` p is below q."""
    own = lanes[lane]
    for step, verdict in own.verdicts:
        known = verdict.p is not None and verdict.q is not None and verdict.chance is None
        if verdict.status == status and known and (not doubted or verdict.p < verdict.q):
            return Place(lane, step, {lane: verdict.node}, tested(own, verdict))
    return None


def tested(own: Reading, verdict: Verdict) -> dict:
    """The numbers of a test, printed so that dividing what is printed gives what is printed."""
    values = {
        "token": own.text_of(verdict.node),
        "before": own.before(verdict.node),
        "position": own.position(verdict.node),
        "p": verdict.p,
        "q": verdict.q,
        "u": verdict.u,
    }
    if 0 < verdict.p < verdict.q:
        shown = compared(verdict.p, verdict.q, verdict.u)
        values |= dict(zip(("said_p", "said_q", "said_ratio", "said_u"), shown, strict=True))
        return values | {"ratio": verdict.passes}
    said = {"said_p": number(verdict.p), "said_q": number(verdict.q), "said_ratio": "1" if verdict.p else "0"}
    return values | said | {"said_u": number(verdict.u or 0.0), "ratio": verdict.passes}


@place
def replacement(lanes: Lanes, lane: int) -> Place | None:
    """The first token that was drawn in place of a rejected draft, with p and q of both."""
    own = lanes[lane]
    for index, (step, verdict) in enumerate(own.verdicts):
        if verdict.status != "resampled":
            continue
        parent, token = own.nodes.parent[verdict.node], own.nodes.token[verdict.node]
        lost = [v for s, v in own.verdicts[:index] if s == step and v.status == "rejected"]
        lost = [v for v in lost if own.nodes.parent[v.node] == parent and v.p is not None and v.q is not None]
        p = chance(own.offers.get((parent, "target")), token)
        q, exact = at_most(own.offers.get((parent, "draft")), token)
        if not lost or p is None:
            continue
        values = {
            "token": own.text_of(verdict.node),
            "share": verdict.p,
            "p": p,
            "q": q,
            "said_q": probability(q) if exact else f"at most {probability(q)}",
            "lost": own.text_of(lost[0].node),
            "p_lost": lost[0].p,
            "q_lost": lost[0].q,
            "same": int(own.nodes.token[lost[0].node] == token),
            "position": own.position(verdict.node),
        }
        return Place(lane, step, {lane: verdict.node}, values)
    return None


def at_most(offer: Distribution | None, token: int) -> tuple[float, bool]:
    """(The probability of `token`, True), or (a bound, False) if it is not among those that were recorded."""
    known = chance(offer, token)
    if known is not None or offer is None:
        return (1.0, False) if known is None else (known, True)
    return min(offer.rest, math.exp(offer.top[-1][1])), False


@place
def whole_round(lanes: Lanes, lane: int) -> Place | None:
    """The first round whose path was accepted to its end, so that the target added a token of its own."""
    own = lanes[lane]
    for step, verdict in own.verdicts:
        gained = sum(s == step and v.status == "accepted" for s, v in own.verdicts)
        if verdict.status == "bonus" and gained:
            drafted = sum(s == step and v.status != "bonus" for s, v in own.verdicts)
            values = {
                "token": own.text_of(verdict.node),
                "p": verdict.p,
                "round": step + 1,
                "accepted": gained,
                "drafted": drafted,
                "gained": gained + 1,
            }
            return Place(lane, step, {lane: verdict.node}, values)
    return None


@place
def rescue(lanes: Lanes, lane: int) -> Place | None:
    """The first drafted token that passed after a sibling of it was rejected."""
    own, lost = lanes[lane], {}
    for step, verdict in own.verdicts:
        parent = own.nodes.parent[verdict.node]
        if verdict.status == "rejected":
            lost.setdefault((step, parent), []).append(own.text_of(verdict.node))
        elif verdict.status == "accepted" and (step, parent) in lost:
            tried = lost[(step, parent)]
            values = {
                "token": own.text_of(verdict.node),
                "lost": "”, “".join(tried),
                "tried": len(tried),
                "position": own.position(verdict.node),
                "round": step + 1,
                "before": own.before(verdict.node),
            }
            return Place(lane, step, {lane: verdict.node}, values)
    return None


@place
def wasted_round(lanes: Lanes, lane: int) -> Place | None:
    """The round with the most drafted tokens that were never looked at."""
    own, counts = lanes[lane], {}
    for step, verdict in own.verdicts:
        row = counts.setdefault(step, {"accepted": 0, "rejected": 0, "never reached": 0, "drafted": 0})
        if verdict.status in row:
            row[verdict.status] += 1
            row["drafted"] += 1
    if not counts:
        return None
    step = max(counts, key=lambda s: counts[s]["never reached"])
    row = counts[step]
    unreached = row.pop("never reached")
    return Place(lane, step, {}, {**row, "unreached": unreached, "round": step + 1}) if unreached else None


@place
def iteration(lanes: Lanes, lane: int, settled: int) -> Place | None:
    """The first iteration in which at least so many positions became final."""
    own, counts, states = lanes[lane], {}, {}
    for step, cell in own.cells:
        if cell.state != "guess":
            states.setdefault(step, []).append(cell.state)
            counts[step] = counts.get(step, 0) + (cell.state == "settled")
    for step, count in counts.items():
        if count >= settled:
            seen = len(states[step])
            values = {"settled": count, "open": seen - count, "seen": seen, "iteration": step + 1}
            return Place(lane, step, {}, values)
    return None


@place
def waiting(lanes: Lanes, lane: int) -> Place | None:
    """The position that was found to have waited for another one furthest away; the first of equals."""
    own = lanes[lane]
    if not own.waits:
        return None
    step, link = max(own.waits, key=lambda wait: wait[1].target - wait[1].source)
    trunk = len(own.trace.prompt)
    values = {
        "target": link.target - trunk + 1,
        "source": link.source - trunk + 1,
        "away": link.target - link.source,
        "token": next(own.word(c.token) for _, c in own.cells if final(c, link.target)),
        "pairs": len(own.waits),
        "iteration": step + 1,
    }
    return Place(lane, step, {}, values)


def final(cell: Cell, position: int) -> bool:
    """Whether the cell says what finally stands at a position."""
    return cell.state == "settled" and cell.position == position


@place
def cut(lanes: Lanes, lane: int, most: int = 8) -> Place | None:
    """The place of highest entropy among those at which the processors left at most so many tokens."""
    own, best = lanes[lane], None
    for index, token in enumerate(own.tokens):
        processed, target = own.offer(token.node, "processed"), own.offer(token.node)
        if processed is None or target is None or processed.rest > 1e-6 or len(processed.top) > most:
            continue
        if best is None or target.entropy > best[1].entropy:
            best = (index, target, processed)
    return None if best is None else cut_place(own, lane, *best)


def cut_place(own: Reading, lane: int, index: int, target: Distribution, processed: Distribution) -> Place:
    """What was left at a place, and how much of the target's mass that was."""
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
    return Place(lane, own.born[token.node], {lane: token.node}, values)


@place
def forbidden(lanes: Lanes, lane: int) -> Place | None:
    """Where the processors took the target's likeliest token away."""
    own = lanes[lane]
    for index, token in enumerate(own.tokens):
        processed, target = own.offer(token.node, "processed"), own.offer(token.node)
        if processed is None or target is None or chance(processed, int(target.top[0][0])) is not None:
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
        return Place(lane, own.born[token.node], {lane: token.node}, values)
    return None


def bits(nats: float | None) -> float | None:
    """An entropy in bits."""
    return None if nats is None else nats / LN2
