"""HTML made in Python. Everything that is not `Html` is escaped when it becomes part of an element, here and
nowhere else.
"""

from html import escape

VOID = ("img", "input", "link", "meta")  # elements without an end


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


def h(tag: str, look: str | dict = "", *children: str | None) -> Html:
    """An element; `look` is its class, or its attributes, of which None and False are left out."""
    attributes = look if isinstance(look, dict) else {"class": look or None}
    given = [(name, value) for name, value in attributes.items() if value is not None and value is not False]
    words = "".join(
        f" {name}" if value is True else f" {name}='{escape(str(value))}'" for name, value in given
    )
    return Html(f"<{tag}{words}>" if tag in VOID else f"<{tag}{words}>{joined(children)}</{tag}>")


def joined(parts) -> Html:
    """These after one another, without those that are None."""
    return Html("".join(p if isinstance(p, Html) else escape(p, quote=False) for p in parts if p is not None))
