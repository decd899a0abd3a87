"""The tests of drafted tokens at one position, one block per attempt: p and q of that attempt, and the
residual.

Later attempts are tested against what the earlier ones left: R = norm(max(R - D, 0)) is recorded, D is the
draft without the tokens already tried. A token that was not recorded gets a number derived from p and q; in
traces that record no residual, all of its numbers are derived.
"""

import math

from decoders.explain.verdicts import reason_of
from decoders.trace.events import Distribution, Verdict
from decoders.trace.number_format import compared, number

ROWS = 9  # tokens shown of each attempt


def attempts(facts, node: int) -> list[dict]:
    """The tests at the node's position in the order in which they were made; empty if nothing was tested.

    Each `{node, id, text, step, status, p, q, u, accept, shown, reason, rows, rest, derived, residual}`.
    `accept` is the acceptance probability, usually min(1, p / q), where a number was drawn for the test;
    `shown` are p, q, accept and u as text; `rows` are `{id, text, p, q, left, mark}`, each None where it is
    unknown. `residual`: whether `left` are shares of "all" or of the "shown" tokens; None without a residual.
    """
    place = facts.children.get(facts.nodes.parent[node], [])
    tested = []
    for order, child in enumerate(place):
        for step, verdict in facts.verdicts.get(child, []):
            if verdict.status in ("accepted", "rejected") and verdict.p is not None:
                tested.append((step, order, child, verdict))
                break
    tested = [t for t in sorted(tested, key=lambda t: t[:2]) if facts.births[t[2]][1].source != "guess"]
    own = next((n for n in place if status(facts, n) == "resampled"), None)
    offers = facts.offers.get(facts.nodes.parent[node], {})
    asked, drafted = distribution(offers, tested[0]) if tested else None, offers.get(("draft", None))
    p, q = known(asked, drafted), known(drafted, asked)
    tests = []
    for i, (step, _, child, verdict) in enumerate(tested):
        token = facts.nodes.token[child]
        p[token], q[token] = verdict.p, verdict.q
        drawn = verdict.u is not None and verdict.q is not None
        following = tested[i + 1] if i + 1 < len(tested) else None
        left, share = {}, None
        if drawn and verdict.status == "rejected":
            recorded = known(offers.get(("residual", f"after test {i + 1}")))
            both = [(t, x) for t, x in recorded.items() if t in p and t in q]
            left, share = residual(
                p, q, max(both, key=lambda pair: pair[1], default=drawn_share(facts, following, own))
            )
            if recorded:
                left, share = known_shares(left, share) | recorded, "all"
        tests.append(
            {
                "node": child,
                "id": token,
                "text": facts.word(child),
                "step": step,
                "status": verdict.status,
                "p": verdict.p,
                "q": verdict.q,
                "u": verdict.u,
                "reason": reason_of(verdict, facts.trace.vocabulary),
                "accept": verdict.passes if drawn else None,
                "derived": i > 0 and drawn,
                "residual": share,
                "shown": printed(verdict),
                **listed(facts, p, q, left, token, facts.nodes.token[own] if own is not None else None),
            }
        )
        if drawn and following:
            p, q = known_shares(left, share), without_tried(q, token, facts.births[child][1].fill)
    return tests


def printed(verdict: Verdict) -> dict[str, str]:
    """p, q, the acceptance probability and u as text. Where the probability is p / q, the printed p and q
    give the printed ratio.
    """
    p, q, u = verdict.p, verdict.q, verdict.u
    if verdict.acceptance is not None or q is None or not 0.0 < p < q:
        texts = [None if x is None else number(x) for x in (p, q, verdict.passes, u)]
    else:
        texts = list(compared(p, q, u))
    return {name: text for name, text in zip(("p", "q", "accept", "u"), texts, strict=True) if text}


def status(facts, node: int) -> str | None:
    """The last verdict's status."""
    return facts.verdicts[node][-1][1].status if node in facts.verdicts else None


def known(offer: Distribution | None, other: Distribution | None = None) -> dict[int, float]:
    """Token -> probability, as far as recorded; 0 for tokens of `other` if every token with any mass is
    listed.
    """
    if offer is None:
        return {}
    whole = offer.among is not None and offer.among <= len(offer.top)
    none = {int(t): 0.0 for t, _ in other.top} if whole and other else {}
    return none | {int(t): math.exp(logprob) for t, logprob in offer.top}


def distribution(offers: dict, first: tuple) -> Distribution | None:
    """The target's distribution that the first test used: the processed one if the test's p comes from it."""
    _, _, _, verdict = first
    processed, target = offers.get(("processed", None)), offers.get(("target", None))
    for offer in (processed, target):
        if any(abs(p - verdict.p) <= 1e-5 * verdict.p for p in known(offer).values()):
            return offer
    return processed or target


def drawn_share(facts, following: tuple | None, own: int | None) -> tuple[int, float] | None:
    """(token, its recorded probability) in the residual of a rejection: the token of the next test, or of the
    target's own draw.
    """
    if following is not None:
        return facts.nodes.token[following[2]], following[3].p
    if own is None or facts.verdicts[own][-1][1].p is None:
        return None
    return facts.nodes.token[own], facts.verdicts[own][-1][1].p


def residual(p: dict, q: dict, drawn: tuple[int, float] | None) -> tuple[dict, str | None]:
    """(token -> share of max(0, p - q), "all" or "shown") for the tokens whose p and q are known.

    The whole sum is known if one share, `drawn`, was recorded for such a token; otherwise the shares are of
    the tokens shown.
    """
    left = {t: max(0.0, p[t] - q[t]) for t in p if t in q}
    total = math.fsum(left.values())
    if drawn and drawn[1] and left.get(drawn[0]):
        return {t: x * drawn[1] / left[drawn[0]] for t, x in left.items()}, "all"
    return ({t: x / total for t, x in left.items()}, "shown") if total > 0 else (left, None)


def known_shares(left: dict, share: str | None) -> dict[int, float]:
    """The shares in `left` that refer to the whole residual."""
    return {t: x for t, x in left.items() if share == "all" or x == 0.0}


def without_tried(q: dict, token: int, fill: str | None) -> dict[int, float]:
    """The draft's distribution after `token` was tried: without it, unless it may be drawn again."""
    if fill == "sampled with replacement":
        return dict(q)
    rest = 1.0 - q[token]
    return {t: 0.0 if t == token else x / rest for t, x in q.items() if x is not None} if rest > 0 else {}


def listed(facts, p: dict, q: dict, left: dict, token: int, own: int | None) -> dict:
    """The tokens to show, most likely first, and the mass of p and q that is left out."""
    must = [t for t in (token, own) if t is not None and (t in p or t in left or t in q)]
    size = lambda t: max(p.get(t) or 0.0, q.get(t) or 0.0, left.get(t) or 0.0)
    others = sorted((t for t in {**p, **q, **left} if t not in must), key=size, reverse=True)
    shown = sorted([*must, *others[: ROWS - len(must)]], key=lambda t: (-(p.get(t) or 0.0), -size(t)))
    marks = {token: "tested"} | ({own: "own"} if own is not None else {})
    rows = [
        {
            "id": t,
            "text": facts.shown(t),
            "p": p.get(t),
            "q": q.get(t),
            "left": left.get(t),
            "mark": marks.get(t),
        }
        for t in shown
    ]
    rest = {k: max(0.0, 1.0 - math.fsum(r[k] or 0.0 for r in rows)) for k in ("p", "q", "left")}
    return {"rows": rows, "rest": rest}
