"""The map of decoding as HTML: a tree of links to the rows of methods (method_rows.py), with pictures of real
runs.

It is text that wraps, in the page's own colours, so it appears at once, in any width and theme.
"""

from html import escape

import networkx as nx

from explorer.page.tabs.method_rows import anchor, thumbnail
from visualizers.analysis.family_tree import caption_of, children, text_of, tops


def tree(graph: nx.DiGraph, families: dict[str, str], pictured: set[str]) -> str:
    """Nested lists, a heading per family, and a caption.

    `graph`: see visualizers.analysis.family_tree; `pictured`: the methods of which a run is recorded.
    """
    made = [
        f"<h3>{escape(title)}</h3>{branch(graph, tops(graph, family), pictured)}"
        for family, title in families.items()
    ]
    words = f'<p class="caption">{escape(caption_of(graph))}</p>'
    return f'<nav class="method-tree" aria-label="Map of decoding">{"".join(made)}</nav>{words}'


def branch(graph: nx.DiGraph, names: list[str], pictured: set[str]) -> str:
    """Some methods as a list; below each method, those derived from it."""
    items = "".join(
        f"<li>{entry(name, graph.nodes[name], name in pictured)}"
        f"{branch(graph, children(graph, name), pictured)}</li>"
        for name in names
    )
    return f"<ul>{items}</ul>" if items else ""


def entry(name: str, node: dict, pictured: bool) -> str:
    """A method: whether it is exact, its picture, its title, its year and what it changed."""
    sign, means = ("●", "exact by default") if node["exact"] else ("○", "not exact by default")
    return (
        f'<i role="img" aria-label="{means}" title="{means}">{sign}</i> '
        f'<a href="#{anchor(name)}">{thumbnail(name, "") if pictured else ""}{escape(node["title"])}</a> '
        f"<span>{escape(text_of(node))}</span>"
    )
