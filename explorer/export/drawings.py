"""The empty HTML in which the player draws: a picture with its strip and legend, and a text as chips.

The scripts in assets/web/player find the parts by `data-dp`.
"""

from explorer.markup import Html, h

HIDDEN = {"aria-hidden": "true"}
WHOLE = "Show the whole run"
STRIP = "The whole run; the frame is the visible part. Click or drag to move it."


def piece(tag: str, name: str, look: str = "", *children: str, **attributes: str | int | bool) -> Html:
    """An element that the player finds by this name."""
    given = {key.replace("_", "-"): value for key, value in attributes.items()}
    return h(tag, {"class": look or None, "data-dp": name} | given, *children)


def scene_html() -> Html:
    """The contents of a picture's element: layers from back to front, the strip below, and the legend."""
    # It has keys of its own, see pointer.js; `voice` tells screen readers which mark is selected.
    keys = {"role": "application", "aria_roledescription": "picture", "tabindex": 0}
    layers = [
        piece(
            "div",
            "picture",
            "dp-picture",
            piece("svg", "marks", "dp-marks", **HIDDEN),
            piece("svg", "texts", "dp-texts", **HIDDEN),
        ),
        piece("div", "veil", "dp-veil"),
        piece("div", "gutters", "dp-gutters", **HIDDEN),
        piece("div", "extras", "dp-gutters", **HIDDEN),  # the fold, and the sign where lanes part
        piece("div", "overlay", "dp-overlay", **HIDDEN),
        piece("button", "followButton", "dp-follow", "Follow", type="button"),
        piece("div", "voice", "dp-unseen", role="status"),
    ]
    whole = {"title": WHOLE, "aria_label": WHOLE}
    strip = [
        piece("button", "wholeButton", "dp-whole-button", "⤢", type="button", aria_pressed="false", **whole),
        piece(
            "div",
            "strip",
            "dp-strip",
            piece("canvas", "canvas", "dp-strip-canvas", **HIDDEN),
            piece("div", "open", "dp-window"),
            title=STRIP,
        ),
    ]
    legend = {"type": "button", "title": "What the marks mean", "aria_label": "Legend", "hidden": True}
    return Html(
        piece("div", "frame", "dp-frame", *layers, **keys)
        + piece("div", "strips", "dp-overview", *strip)
        + piece("button", "legendButton", "dp-legend-button", "?", aria_expanded="false", **legend)
        + piece("div", "legend", "dp-legend")
    )


def listed() -> dict[str, str | int]:
    """The attributes of the list of a text's chips, in every layout."""
    return {"role": "listbox", "aria-label": "Text, token by token", "tabindex": 0}


def prose_html() -> Html:
    """The contents of the element of a text view: a copy button, and the text."""
    copy = {"type": "button", "class": "copy", "aria-label": "Copy this text"}
    return Html(h("button", copy, "Copy") + h("div", {"class": "dp-chips dp-prose"} | listed()))
