"""The map of decoding as HTML: a tree of links to the rows of methods (method_rows.py), with pictures of real
runs.

It is text that wraps, in the page's own colours, so it appears at once, in any width and theme.
"""

from collections.abc import Callable
from html import escape

import networkx as nx

from explorer.page.tabs.method_rows import anchor, thumbnail
from visualizers.analysis.family_tree import caption_of, children, text_of, tops


def row_link(name: str) -> str:
    """The address of a method's row in the tab."""
    return f"#{anchor(name)}"


def tree(
    graph: nx.DiGraph,
    families: dict[str, str],
    pictured: set[str],
    link: Callable[[str], str] = row_link,
    image: Callable[[str, str], str] = thumbnail,
) -> str:
    """Nested lists, a heading per family, and a caption.

    `graph`: see visualizers.analysis.family_tree; `pictured`: the methods of which a run is recorded. `link`:
    the address of a method; `image`: the picture of a method with its alternative text, as HTML.
    """

    def branch(names: list[str]) -> str:
        """Some methods as a list; below each method, those derived from it."""
        items = "".join(f"<li>{entry(name)}{branch(children(graph, name))}</li>" for name in names)
        return f"<ul>{items}</ul>" if items else ""

    def entry(name: str) -> str:
        """A method: whether it is exact, its picture, its title, its year and what it changed."""
        node = graph.nodes[name]
        sign, means = ("●", "exact by default") if node["exact"] else ("○", "not exact by default")
        drawn = image(name, "") if name in pictured else ""
        return (
            f'<i role="img" aria-label="{means}" title="{means}">{sign}</i> '
            f'<a href="{link(name)}">{drawn}{escape(node["title"])}</a> '
            f"<span>{escape(text_of(node))}</span>"
        )

    made = [f"<h3>{escape(title)}</h3>{branch(tops(graph, family))}" for family, title in families.items()]
    words = f'<p class="caption">{escape(caption_of(graph))}</p>'
    return f'<nav class="method-tree" aria-label="Map of decoding">{"".join(made)}</nav>{words}'
