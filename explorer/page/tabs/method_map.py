"""The map of decoding as HTML: the picture of visualizers.figures.decoding_map with links to the rows of
methods (method_rows.py), in a window that scrolls, with buttons that enlarge it and lead to its families.

It is in the page's own colours, so it appears at once, in any theme. What it does is in
assets/web/page/method-map.js.
"""

from collections.abc import Callable

import networkx as nx

from explorer.markup import Html, h
from explorer.page.tabs.method_rows import anchor, thumbnail
from visualizers.analysis.family_tree import caption_of
from visualizers.figures.decoding_map import Inks, Medium, decoding_map, viewed, written

POINT_AT = "Point at a method, or press it, to read here what it changed. Pressing it also opens its card."
BUTTONS = (
    ("smaller", "−", "Makes the map smaller; so does the wheel with Ctrl"),
    ("larger", "+", "Makes the map larger; so does the wheel with Ctrl"),
    ("whole", "Whole map", "Shows all of it"),
    ("full", "Full screen", "Fills the screen with the map; Esc to leave"),
)


def row_link(name: str) -> str:
    """The address of a method's row in the tab."""
    return f"#{anchor(name)}"


def method_map(
    graph: nx.DiGraph,
    families: dict[str, str],
    pictured: set[str],
    link: Callable[[str], str] = row_link,
    image: Callable[[str, str], str] = thumbnail,
) -> Html:
    """The map and its buttons.

    `graph`: see visualizers.analysis.family_tree; `pictured`: the methods of which a run is recorded. `link`:
    the address of a method; `image`: the picture of a method with its alternative text, as HTML.
    """
    inks = Inks(
        *(f"var(--{name})" for name in ("text", "soft", "line", "bg")),
        {family: f"var(--family-{family})" for family in families},
    )

    def picture(name: str, *box: float) -> str:
        if name not in pictured:
            return ""
        place = dict(zip(("x", "y", "width", "height"), (f"{side:.1f}" for side in box), strict=True))
        return h("foreignObject", place, h("div", "map-picture", Html(image(name, ""))))

    drawn = decoding_map(graph, families, Medium(inks, written, picture, link))
    bar = [
        button({"data-family": name, "style": f"--family: var(--family-{name})"}, title)
        for name, title in families.items()
    ]
    bar += [button({"data-map": act, "title": says}, word) for act, word, says in BUTTONS]
    view_box = {"viewBox": viewed(), "role": "group", "aria-label": "Methods by year"}
    window = {
        "class": "map-window",
        "tabindex": "0",
        "role": "region",
        "aria-label": "Map, scrollable",
    }
    return h(
        "nav",
        {"class": "decoding-map explorer", "aria-label": "Map of decoding"},
        h("div", "map-bar", *bar),
        h("div", window, h("div", "map-sheet", h("svg", view_box, Html(drawn)))),
        h("p", "map-says", POINT_AT),
        h("p", "caption", caption_of(graph)),
    )


def button(given: dict[str, str], words: str) -> Html:
    """A button of the map."""
    return h("button", {"type": "button", **given}, words)
