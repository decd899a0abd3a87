"""The map of decoding: which method grew out of which, in the order of the map.

Takes a NetworkX graph whose nodes are methods (`title`, `year`, `family`, `branch`, `differs`, `exact`) and
whose edges lead from a method to those that grew from it.
"""

import networkx as nx


def tops(graph: nx.DiGraph, family: str) -> list[str]:
    """The methods of a family that grew out of no other of it, older ones first."""
    members = {name for name, own in graph.nodes(data="family") if own == family}
    return by_age(graph, [name for name in members if not members & set(graph.predecessors(name))])


def children(graph: nx.DiGraph, name: str) -> list[str]:
    """The methods of the same family that grew out of this one, older ones first."""
    family = graph.nodes[name]["family"]
    return by_age(graph, [n for n in graph.successors(name) if graph.nodes[n]["family"] == family])


def by_age(graph: nx.DiGraph, names: list[str]) -> list[str]:
    """Methods by year, then by title."""
    return sorted(names, key=lambda name: (graph.nodes[name]["year"], graph.nodes[name]["title"]))


def in_order(graph: nx.DiGraph, family: str) -> list[str]:
    """The methods of a family, parents before their children, older ones first."""

    def below(name: str) -> list[str]:
        return [name, *(one for child in children(graph, name) for one in below(child))]

    return [one for top in tops(graph, family) for one in below(top)]


def caption_of(graph: nx.DiGraph) -> str:
    """What the map shows, in words."""
    years = [int(year) for _, year in graph.nodes(data="year") if year]
    exact = sum(exact for _, exact in graph.nodes(data="exact"))
    return (
        f"{len(graph)} methods from {min(years)} to {max(years)}; a card says what a method changed about "
        f"the one it grew from. Filled circles ({exact}): by default exactly what plain decoding or "
        "transformers' generate gives."
    )


def text_of(node: dict) -> str:
    """The year and the change of a method, after its title."""
    return " · ".join(part for part in (node["year"], node["differs"]) if part)
