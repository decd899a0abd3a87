"""Places in speculative lanes: tests, rejections, and what was written instead."""

import math
from collections.abc import Iterator

from decoders.trace.events import Distribution, Verdict
from decoders.trace.number_format import compared, number
from explorer.lessons.facts import Reading, probability_of
from explorer.lessons.stops import Lanes, Place, place
from visualizers.scene.words import probability


@place
def first_verdict(lanes: Lanes, lane: int, status: str, doubted: bool = True) -> Place | None:
    """The first token with this verdict that was tested by p / q; with `doubted`, only one whose p is below
    q.
    """
    own = lanes[lane]
    for step, verdict in own.verdicts:
        known = verdict.p is not None and verdict.q is not None and verdict.acceptance is None
        if verdict.status == status and known and (not doubted or verdict.p < verdict.q):
            return Place(lane, step, {lane: [verdict.node]}, tested(own, verdict))
    return None


def tested(own: Reading, verdict: Verdict) -> dict:
    """The numbers of a test, rounded so that the printed p and q give the printed ratio."""
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
        values |= dict(zip(("p_text", "q_text", "ratio_text", "u_text"), shown, strict=True))
        return values | {"ratio": verdict.passes}
    printed = {
        "p_text": number(verdict.p),
        "q_text": number(verdict.q),
        "ratio_text": "1" if verdict.p else "0",
    }
    return values | printed | {"u_text": number(verdict.u or 0.0), "ratio": verdict.passes}


@place
def overconfident(lanes: Lanes, lane: int) -> Place | None:
    """The rejected token that the draft overrated most: the one with the largest q - p."""
    own = lanes[lane]
    lost = [(s, v) for s, v in own.verdicts if v.status == "rejected" and v.p is not None and v.q is not None]
    if not lost:
        return None
    step, verdict = max(lost, key=lambda pair: pair[1].q - pair[1].p)
    behind = sum(s == step and v.status == "never reached" for s, v in own.verdicts)
    values = {**tested(own, verdict), "gap": verdict.q - verdict.p, "behind": behind}
    return Place(lane, step, {lane: [verdict.node]}, values)


@place
def replacement(lanes: Lanes, lane: int) -> Place | None:
    """The first token that was drawn in place of a rejected draft token, with p and q of both."""
    return next((place for place, _ in replacements(lanes[lane], lane)), None)


@place
def residual(lanes: Lanes, lane: int) -> Place | None:
    """The first such token whose q is recorded. `mass`: the sum of max(p - q, 0), which normalises the
    residual; `drafted`, `drawn`: the probabilities of the two ways in which the token can be written.
    """
    for replaced, exact in replacements(lanes[lane], lane):
        p, q, share = (replaced.values[name] for name in ("p", "q", "share"))
        if exact and p > q:
            replaced.values |= {"mass": (p - q) / share, "drafted": q, "drawn": p - q}
            return replaced
    return None


def replacements(own: Reading, lane: int) -> Iterator[tuple[Place, bool]]:
    """(Place of a token that replaced a rejected one, whether its q is recorded), in order."""
    for index, (step, verdict) in enumerate(own.verdicts):
        if verdict.status != "resampled":
            continue
        parent, token = own.nodes.parent[verdict.node], own.nodes.token[verdict.node]
        lost = [v for s, v in own.verdicts[:index] if s == step and v.status == "rejected"]
        lost = [v for v in lost if own.nodes.parent[v.node] == parent and v.p is not None and v.q is not None]
        p = probability_of(own.offers.get((parent, "target")), token)
        q, exact = at_most(own.offers.get((parent, "draft")), token)
        if not lost or p is None:
            continue
        values = {
            "token": own.text_of(verdict.node),
            "share": verdict.p,
            "p": p,
            "q": q,
            "q_text": probability(q) if exact else f"at most {probability(q)}",
            "lost": own.text_of(lost[0].node),
            "p_lost": lost[0].p,
            "q_lost": lost[0].q,
            "same": int(own.nodes.token[lost[0].node] == token),
            "position": own.position(verdict.node),
        }
        yield Place(lane, step, {lane: [verdict.node, lost[0].node]}, values), exact


def at_most(offer: Distribution | None, token: int) -> tuple[float, bool]:
    """(The probability of `token`, True), or (an upper bound, False) if that token was not recorded."""
    known = probability_of(offer, token)
    if known is not None or offer is None:
        return (1.0, False) if known is None else (known, True)
    return min(offer.rest, math.exp(offer.top[-1][1])), False


@place
def whole_round(lanes: Lanes, lane: int) -> Place | None:
    """The first round whose path was fully accepted, so that the target added a bonus token."""
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
            return Place(lane, step, {lane: [verdict.node]}, values)
    return None


@place
def longest_accepted_draft(lanes: Lanes, lane: int) -> Place | None:
    """The round with the most accepted draft tokens; the first one in a tie."""
    own, accepted = lanes[lane], {}
    for step, verdict in own.verdicts:
        if verdict.status == "accepted":
            accepted.setdefault(step, []).append(verdict.node)
    if not accepted:
        return None
    step = max(accepted, key=lambda s: len(accepted[s]))
    drafted = sum(s == step and v.status not in ("bonus", "resampled") for s, v in own.verdicts)
    gained = len(accepted[step]) + sum(
        s == step and v.status in ("bonus", "resampled") for s, v in own.verdicts
    )
    values = {"round": step + 1, "accepted": len(accepted[step]), "drafted": drafted, "gained": gained}
    return Place(lane, step, {lane: accepted[step]}, values)


@place
def broken_round(lanes: Lanes, lane: int) -> Place | None:
    """The round of a chain in which a rejection discarded the most tokens; `freed` includes the rejected
    one.
    """
    own, lost = lanes[lane], {}
    for step, verdict in own.verdicts:
        if verdict.status in ("rejected", "never reached"):
            lost.setdefault(step, []).append(verdict)
    broken = {step: pair for step, pair in lost.items() if pair[0].status == "rejected"}
    if not broken:
        return None
    step = max(broken, key=lambda s: len(broken[s]))
    accepted = sum(s == step and v.status == "accepted" for s, v in own.verdicts)
    values = {"token": own.text_of(broken[step][0].node), "freed": len(broken[step]), "accepted": accepted}
    values |= {"round": step + 1, "drafted": accepted + len(broken[step])}
    return Place(lane, step, {lane: [verdict.node for verdict in broken[step]]}, values)


@place
def rescue(lanes: Lanes, lane: int) -> Place | None:
    """The first drafted token that was accepted after one of its siblings had been rejected."""
    own, lost = lanes[lane], {}
    for step, verdict in own.verdicts:
        parent = own.nodes.parent[verdict.node]
        if verdict.status == "rejected":
            lost.setdefault((step, parent), []).append(own.text_of(verdict.node))
        elif verdict.status == "accepted" and (step, parent) in lost:
            tried = lost[(step, parent)]
            values = {
                "token": own.text_of(verdict.node),
                "lost": "” and “".join(filter(None, ["”, “".join(tried[:-1]), tried[-1]])),
                "tried": len(tried),
                "position": own.position(verdict.node),
                "round": step + 1,
                "before": own.before(verdict.node),
            }
            return Place(lane, step, {lane: [verdict.node]}, values)
    return None


@place
def wasted_round(lanes: Lanes, lane: int) -> Place | None:
    """The round with the most drafted tokens that were never tested."""
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
