"""The map of papers as a NetworkX graph: routes from papers through mechanisms and parts to implementations.

Made from the map of methods (method_map.py), so only from declarations.
"""

from collections.abc import Iterable

import networkx as nx

from decoders.registry import strategies
from explorer.catalog import papers
from explorer.catalog.method_map import method_map

LINKS = {"strategy": "#method-{}", "experiment": "#experiment={}"}  # the address of a node on the page
COMMON = "processors"  # a kind of part that most strategies have, so it distinguishes none of them


def paper_map() -> nx.DiGraph:
    """paper -> mechanism -> part -> strategy, by edges of the kind "route"; edges of the kind "realises" lead
    from a paper directly to its implementations.

    A mechanism is a kind of part (drafter, verifier ...). For a strategy without parts it is the family, for
    other implementations their kind (lens, memory, model, experiment), and for papers without one their
    status. Nodes have `column` (0 to 3), `text`, `says` and `link`, papers also `status`, implementations
    `family` ("" if it is no strategy). Logits processors are left out.
    """
    known, graph = method_map(), nx.DiGraph(kind="papers")
    for row in papers.papers():
        title = f"{row['alias']}: {row['title']}" if row["alias"] else row["title"]
        says = " ".join(part for part in (f"{title}.", row["authors"], row["year"]) if part)
        link = f"#paper={row['slug']}"
        graph.add_node(
            f"paper {row['slug']}", column=0, text=title, says=says, link=link, status=row["status"]
        )
        if row["status"] != "works":
            graph.add_edge(f"paper {row['slug']}", mechanism(graph, f"{row['status']} only"), kind="route")
    for claim in papers.claims():
        node, link = f"{claim.kind} {claim.name}", LINKS.get(claim.kind, "").format(claim.name)
        family = strategies()[claim.name].family if claim.kind == "strategy" else ""
        says = f"{claim.kind}: {claim.text}"
        graph.add_node(node, column=3, text=claim.text, says=says, link=link, family=family)
        for kind, made in ways(known, node, claim.kind):
            on = mechanism(graph, kind)
            for piece in made:
                says = f"{known.nodes[piece]['text']}: {known.nodes[piece]['says']}"
                text = known.nodes[piece]["text"].removeprefix(f"{kind}: ")
                graph.add_node(piece, column=2, text=text, says=says, link="")
                graph.add_edges_from([(on, piece), (piece, node)], kind="route")
            if not made:
                graph.add_edge(on, node, kind="route")
            graph.add_edges_from(((f"paper {slug}", on) for slug in claim.papers), kind="route")
        graph.add_edges_from(((f"paper {slug}", node) for slug in claim.papers), kind="realises")
    return graph


def ways(known: nx.DiGraph, node: str, kind: str) -> list[tuple[str, list[str]]]:
    """The mechanisms of an implementation in the map of methods, each with its parts of that kind."""
    near = {name: known.nodes[name] for name in known[node]}
    parts: dict[str, list[str]] = {}
    for name, own in near.items():
        if own["kind"] == "part" and not own["text"].startswith(f"{COMMON}: "):
            parts.setdefault(own["text"].partition(": ")[0], []).append(name)
    families = [own["text"] for own in near.values() if own["kind"] == "family"]
    return list(parts.items()) or [(families[0] if families else kind, [])]


def mechanism(graph: nx.DiGraph, text: str) -> str:
    """Adds the node of a mechanism unless it exists, and returns its name."""
    graph.add_node(f"mechanism {text}", column=1, text=text, says=text, link="")
    return f"mechanism {text}"


def around(graph: nx.DiGraph, names: Iterable[str]) -> nx.DiGraph:
    """The subgraph of the map of papers with these papers and strategies and all nodes on their routes."""
    kept = set()
    for name in names:
        is_paper = graph.nodes[name]["column"] == 0
        near = graph.succ[name] if is_paper else graph.pred[name]
        realised = {other for other, edge in near.items() if edge["kind"] == "realises"}
        running = realised if is_paper else {name}
        parts = {n for one in running for n in graph.pred[one] if graph.nodes[n]["column"] == 2}
        own = {name} | realised | parts
        kept |= own | {n for one in own for n in graph.pred[one] if graph.nodes[n]["column"] == 1}
        if is_paper and not realised:
            kept |= set(graph[name])
    return graph.subgraph(kept)
