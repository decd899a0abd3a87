"""The inspector's small parts as HTML: tokens, bars, buttons, numbers."""

from explorer.markup import Html, h
from visualizers.views.any_lane.sampler import digits


def token(text: str) -> Html:
    """A token as text; a longer one, which a narrow column may cut off, also has its text as a title."""
    return h("span", {"class": "token", "title": text if len(text) > 4 else None}, text)


def jump(node: int, text: str) -> Html:
    """Any other token of this lane, one click away."""
    return h("button", {"class": "token jump", "data-node": node}, text)


def branch(row: dict, branches: bool) -> Html | None:
    """The button that forces a row's token in a new lane; None on a page that cannot branch."""
    look = {"type": "button", "class": "branch", "data-token": row["id"]}
    look["aria-label"] = f"Branch here with {row['text']}"
    look["title"] = f"Branch here: force {row['text']} in a new lane"
    return h("button", look, "⚑") if branches else None


def bar(kind: str, share: float) -> Html:
    """A bar that fills a share of its space, in whole percent: a saved page holds very many of them."""
    width = f"width:{100 * min(1.0, share):.0f}%" if share else None
    return h("span", {"class": f"bar {kind}", "hidden": not share, "style": width})


def track(kind: str, share: float) -> Html:
    """A bar in a space of its own, so that the number after it does not change its scale."""
    return h("span", "track", bar(kind, share))


def of_100(share: float) -> str:
    """A share as a CSS length."""
    return f"{100 * share:.3g}%"


def probability(p: float | None) -> str:
    """`.0352`: three significant digits; 0 only for exactly 0; `—` if unknown."""
    if p is None:
        return "—"
    if p == 0:
        return "0"
    if p < 1e-6:
        number, exponent = f"{p:.1e}".split("e-")
        return f"{number}e−{int(exponent)}"
    return "1.00" if p >= 0.9995 else digits(p, 2 - int(f"{p:.2e}".split("e")[1]))
