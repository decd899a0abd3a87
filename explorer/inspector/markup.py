"""HTML of the inspector: elements, bars, buttons. A text is a text: whatever is no `Html` is escaped when it
becomes part of an element, here and nowhere else. Knows nothing of traces.
"""

from html import escape

from visualizers.views.any_lane.sampler import digits


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


def h(tag: str, look: str | dict = "", *children: str | None) -> Html:
    """An element; `look` is its class, or its attributes, of which None and False are left out."""
    attributes = look if isinstance(look, dict) else {"class": look or None}
    given = [(name, value) for name, value in attributes.items() if value is not None and value is not False]
    words = "".join(
        f" {name}" if value is True else f' {name}="{escape(str(value))}"' for name, value in given
    )
    return Html(f"<{tag}{words}>" if tag == "input" else f"<{tag}{words}>{joined(children)}</{tag}>")


def joined(parts) -> Html:
    """These after one another, without those that are None."""
    return Html("".join(p if isinstance(p, Html) else escape(p) for p in parts if p is not None))


def token(text: str) -> Html:
    """A token as it is shown."""
    return h("span", {"class": "token", "title": text}, text)


def jump(node: int, text: str) -> Html:
    """Any other token of this lane, one click away."""
    return h("button", {"type": "button", "class": "token jump", "data-node": node}, text)


def branch(row: dict, branches: bool) -> Html | None:
    """The button that forces a row's token in a new lane, where a page can."""
    look = {"type": "button", "class": "branch", "data-token": row["id"]}
    look["aria-label"] = f"Branch here with {row['text']}"
    look["title"] = f"Branch here: force {row['text']} in a new lane"
    return h("button", look, "⚑") if branches else None


def bar(kind: str, share: float) -> Html:
    """A bar of so much of its room."""
    return h(
        "span", {"class": f"bar {kind}", "hidden": not share, "style": f"width: {of_100(min(1.0, share))}"}
    )


def track(kind: str, share: float) -> Html:
    """A bar in a space of its own, so that the number behind it takes nothing of its scale."""
    return h("span", "track", bar(kind, share))


def of_100(share: float) -> str:
    """A share as a length of CSS."""
    return f"{100 * share:.5g}%"


def probability(p: float | None) -> str:
    """`.0352`: three significant digits, never 0 for something that is not nothing; `—` if unknown."""
    if p is None:
        return "—"
    if p == 0:
        return "0"
    if p < 1e-6:
        number, exponent = f"{p:.1e}".split("e-")
        return f"{number}e−{int(exponent)}"
    return "1.00" if p >= 0.9995 else digits(p, 2 - int(f"{p:.2e}".split("e")[1]))
