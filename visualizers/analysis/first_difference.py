"""Where lanes diverge: the first token at which their texts differ, how far, and the kind of difference."""

import math

from visualizers.analysis.lane_stats import Token
from visualizers.scene.words import probability

NUMERICS = 0.1  # nats: two forwards of one model over one text differ by less, in every precision offered
KINDS = {
    "tie": "a tie: both tokens are equally likely",
    "numerics": "numerics: each took the most likely token of its own forward, and they differ by rounding",
    "forced": "the token was put there, not decoded",
    "choice": "a real difference",
}


def pair(a: list[Token], b: list[Token], lanes: tuple[int, int]) -> dict:
    """How two texts compare; `lanes` are their numbers from 1.

    `{lanes, same, position}`: `same` equal tokens, then a difference at `position` (1 is the first token;
    None: no difference as far as both have come); and where they differ `{nodes, tokens, p, ranks, margin,
    kind, why}`. `margin` is the difference of the two tokens' log-probabilities under the target, in nats,
    None if it was not recorded; `kind` is one of KINDS.
    """
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x.token != y.token), None)
    if same is None:
        return {"lanes": list(lanes), "same": min(len(a), len(b)), "position": None}
    here = (a[same], b[same])
    kind = kind_of(*here)
    return {
        "lanes": list(lanes),
        "same": same,
        "position": same + 1,
        "nodes": [t.node for t in here],
        "tokens": [t.text for t in here],
        "p": [target_probability(t) for t in here],
        "ranks": [t.rank for t in here],
        "margin": margin(*here),
        "kind": kind,
        "why": why(kind, here, lanes),
    }


def margin(x: Token, y: Token) -> float | None:
    """By how much the tokens' log-probabilities differ, by one lane's own numbers if it recorded both."""
    for own, other in ((x, y), (y, x)):
        seen = own.offered(other.token)
        if seen is not None and own.logprob is not None:
            return abs(own.logprob - seen)
    if x.logprob is None or y.logprob is None:
        return None
    return abs(x.logprob - y.logprob)


def kind_of(x: Token, y: Token) -> str:
    """One of KINDS.

    Up to here both lanes have the same text, so the target's distribution is the same for both but for the
    rounding of different forwards: if both took its most likely token, only a tie or numerics can explain a
    difference.
    """
    if x.forced or y.forced:
        return "forced"
    by = margin(x, y)
    if x.rank != 1 or y.rank != 1 or by is None or by > NUMERICS:
        return "choice"
    tied = any(a.offered(a.token) == a.offered(b.token) for a, b in ((x, y), (y, x)))
    return "tie" if tied else "numerics"


def why(kind: str, here: tuple[Token, Token], lanes: tuple[int, int]) -> str:
    """The kind in words; for a real difference also which lane did not take the most likely token."""
    others = [
        f"lane {lane} took " + (f"the token of rank {t.rank}" if t.rank else "an unlikely token")
        for t, lane in zip(here, lanes, strict=True)
        if t.top and t.rank != 1
    ]
    return KINDS[kind] + (": " + ", ".join(others) if kind == "choice" and others else "")


def target_probability(token: Token) -> float | None:
    """Its probability under the target."""
    return None if token.logprob is None else math.exp(min(0.0, token.logprob))


def overall(pairs: list[dict], texts: dict[int, list[Token]]) -> dict | None:
    """The first difference among all lanes, None if there is none: `{position, same, groups}`.

    `texts`: lane number -> its tokens. `groups` say which `lanes` took which `token` there, with their
    `nodes` and `p` under the target.
    """
    parted = [p["position"] for p in pairs if p["position"] is not None]
    if not parted:
        return None
    same = min(parted) - 1
    groups: dict[int, dict] = {}
    for lane, text in texts.items():
        if len(text) > same:
            here = text[same]
            made = {"token": here.text, "lanes": [], "nodes": [], "p": target_probability(here)}
            group = groups.setdefault(here.token, made)
            group["lanes"].append(lane)
            group["nodes"].append(here.node)
    return {"position": same + 1, "same": same, "groups": list(groups.values())}


def sentence(texts: dict[int, list[Token]], ended: bool, first: dict | None) -> str:
    """What the lanes' texts have in common, in one sentence. `ended`: all have; `first`: see `overall`."""
    written = [lane for lane, text in texts.items() if text]
    if len(texts) < 2:
        return "There is one lane; add another to compare."
    if len(written) < 2:
        return "Nothing to compare yet: fewer than two lanes have tokens that are final."
    if first is None:
        shortest = min(len(texts[lane]) for lane in written)
        longer = [lane for lane in written if len(texts[lane]) > shortest]
        more = (
            f"; {named(longer)} {'continue' if len(longer) > 1 else 'continues'} after them" if longer else ""
        )
        so_far = "" if ended else " so far"
        return f"{named(written).capitalize()} write {the_same(shortest)}{so_far}{more}."
    takes = []
    for group in first["groups"]:
        verb = "" if takes else " take" if len(group["lanes"]) > 1 else " takes"
        p = "" if group["p"] is None else f" (p {probability(group['p'])})"
        takes.append(f"{named(group['lanes'])}{verb} “{group['token']}”{p}")
    lanes = named(sorted(lane for group in first["groups"] for lane in group["lanes"])).capitalize()
    if not first["same"]:
        return f"{lanes} differ from the first token on: {', '.join(takes)}."
    verb = "begin with" if first["same"] == 1 else "write"
    return f"{lanes} {verb} {the_same(first['same'])}; at position {first['position']} {', '.join(takes)}."


def relation(pair: dict, lengths: tuple[int, int], ended: tuple[bool, bool]) -> dict:
    """How the second lane of a pair compares with the first: `{to, equal, position, caption, badge}`.

    `equal`: True if both have ended with the same tokens, False if they differ, None while that is open.
    """
    to, same = pair["lanes"][0], tokens(pair["same"])
    made = {"to": to, "equal": None, "position": pair["position"], "badge": ""}
    if pair["position"] is not None:
        by = "" if pair["margin"] is None else f", margin {margin_text(pair['margin'])}"
        kind = "" if pair["kind"] == "choice" else f" ({pair['kind']})"
        at = f"at token {pair['position']}{by}{kind}"
        caption = f"first difference from lane {to} {at}"
        return {**made, "equal": False, "caption": caption, "badge": f"≠ lane {to} {at}"}
    if not pair["same"]:
        return {**made, "caption": f"nothing yet to compare with lane {to}"}
    if not all(ended):
        caption = f"equal to lane {to} in {same} so far"
        return {**made, "caption": caption, "badge": f"= lane {to} so far"}
    if lengths[0] != lengths[1]:
        caption = f"equal to lane {to} in {same}, then one of them ends"
        return {**made, "equal": False, "caption": caption, "badge": f"= lane {to} in {same}"}
    caption = f"equal to lane {to} for all {same}"
    return {**made, "equal": True, "caption": caption, "badge": f"= lane {to}, {same}"}


def pair_sentence(pair: dict) -> str:
    """Where two lanes part, by how much and why; of a `pair` that has a position."""
    a, b = pair["lanes"]
    by = "" if pair["margin"] is None else f" (margin {margin_text(pair['margin'])} nats)"
    return f"Lanes {a} and {b} differ from token {pair['position']} on{by}: {pair['why']}."


def margin_text(nats: float) -> str:
    """`.02`, `1.40`, `3e-07`."""
    if nats == 0:
        return "0"
    return f"{nats:.2f}".removeprefix("0") if nats >= 0.01 else f"{nats:.0e}"


def tokens(count: int) -> str:
    """`1 token`, `12 tokens`."""
    return f"{count} token" + ("s" if count != 1 else "")


def the_same(count: int) -> str:
    """`the same token`, `the same 12 tokens`."""
    return "the same token" if count == 1 else f"the same {tokens(count)}"


def named(lanes: list[int]) -> str:
    """`lane 2`, `lanes 1 and 3`, `lanes 1, 2 and 4`."""
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    return "lanes " + ", ".join(map(str, lanes[:-1])) + f" and {lanes[-1]}"
