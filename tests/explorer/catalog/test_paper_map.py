"""The map of papers has a route from every paper to what realises it, and a part of it for a search."""

import networkx as nx

from decoders.registry import strategies
from explorer.catalog.paper_map import around, paper_map
from explorer.catalog.papers import claims, papers
from visualizers.graphs.layered import columns


def routes(graph: nx.DiGraph) -> nx.DiGraph:
    return graph.edge_subgraph([(a, b) for a, b, kind in graph.edges(data="kind") if kind == "route"])


def test_every_paper_that_works_has_a_route_to_all_that_realises_it():
    graph = paper_map()
    drawn = routes(graph)
    for claim in claims():
        for slug in claim.papers:
            assert f"{claim.kind} {claim.name}" in nx.descendants(drawn, f"paper {slug}")
    for row in papers():
        reached = [graph.nodes[name]["column"] for name in nx.descendants(drawn, f"paper {row['slug']}")]
        assert (3 in reached) == (row["status"] == "works") and 1 in reached
    assert all(graph.nodes[a]["column"] < graph.nodes[b]["column"] for a, b in graph.edges)


def test_a_strategy_has_its_own_parts_around_it_and_no_others():
    graph = paper_map()
    strategy = strategies()["spectr"]
    parts = {f"{p.kind}: {p.name}" for p in strategy.parts({p.name: p.default for p in strategy.parameters})}
    kept = around(graph, ["strategy spectr"])
    own = {name.removeprefix("part ") for name in kept if name.startswith("part ")}
    assert own == {part for part in parts if not part.startswith("processors")} and own
    assert {n for n in kept if n.startswith("strategy ")} == {"strategy spectr"}
    assert {f"paper {slug}" for slug in strategy.papers} == {n for n in kept if n.startswith("paper ")}
    card = next(row["slug"] for row in papers() if row["status"] == "card")
    assert set(around(graph, [f"paper {card}"])) == {f"paper {card}", "mechanism card only"}


def test_the_order_of_columns_is_the_same_each_time_and_has_few_crossings():
    graph = paper_map()
    order = columns(graph)
    assert order == columns(paper_map()) and sorted(sum(order, [])) == sorted(graph)
    drawn = routes(graph)
    straight = sum(crossings(drawn, *pair) for pair in zip(order, order[1:], strict=False))
    by_name = [sorted(names) for names in order]
    assert straight < 0.7 * sum(crossings(drawn, *pair) for pair in zip(by_name, by_name[1:], strict=False))


def crossings(graph: nx.DiGraph, left: list[str], right: list[str]) -> int:
    """How many pairs of edges between two columns cross."""
    place = {name: at for names in (left, right) for at, name in enumerate(names)}
    edges = [(place[a], place[b]) for a in left if a in graph for b in graph[a] if b in place]
    return sum(
        (a < c) != (b < d) and a != c and b != d for n, (a, b) in enumerate(edges) for c, d in edges[:n]
    )
