"""The map of methods as a NetworkX graph: what implements which paper, and which strategies share a part.

Nodes are papers, strategies, their parts and families, and everything else that implements a paper; all of it
comes from declarations.
"""

import networkx as nx

from decoders.registry import FAMILIES, strategies
from explorer.catalog import origins, papers

EXACT = (
    "equal to generate",
    "lossless",
    "exact",
)  # badges that promise plain decoding's result begin so


def method_map() -> nx.DiGraph:
    """A node has `kind` ("strategy", "paper", "part", "lens", "memory", "model", "experiment", "family") and
    `text`, a paper its `status`, a part what it `says`. An edge has `kind`: a strategy "realises" papers,
    "has" parts and "belongs to" a family; a lens, a memory or a model "realises" and an experiment "repeats"
    papers. Parts are those of a strategy's default parameters.
    """
    graph = nx.DiGraph(kind="methods")
    for name, title in FAMILIES.items():
        graph.add_node(f"family {name}", kind="family", text=title)
    for row in papers.papers():
        graph.add_node(f"paper {row['slug']}", kind="paper", text=row["title"], status=row["status"])
    for name, strategy in strategies().items():
        node = f"strategy {name}"
        graph.add_edge(node, f"family {strategy.family}", kind="belongs to")
        for part in strategy.parts({p.name: p.default for p in strategy.parameters}):
            piece = f"part {part.kind}: {part.name}"
            graph.add_node(piece, kind="part", text=f"{part.kind}: {part.name}", says=part.says)
            graph.add_edge(node, piece, kind="has")
    for claim in papers.claims():
        node, kind = f"{claim.kind} {claim.name}", "repeats" if claim.kind == "experiment" else "realises"
        graph.add_node(node, kind=claim.kind, text=claim.text)
        graph.add_edges_from((node, f"paper {slug}", {"kind": kind}) for slug in claim.papers)
    return graph


def family_tree() -> nx.DiGraph:
    """What grew from what: a node for each strategy with `title`, `family`, `branch` (its mechanism), `year`
    ("" if unknown), `differs` and whether it is `exact` by default; edges lead from parents to children.
    """
    graph = nx.DiGraph(kind="family tree")
    for name, strategy in strategies().items():
        known = origins.lineage().get(name, {"parent": "", "differs": strategy.summary})
        badge = strategy.badge({p.name: p.default for p in strategy.parameters})
        graph.add_node(
            name,
            title=strategy.title,
            family=strategy.family,
            branch=branch_of(name),
            year=origins.first_year(origins.sources(name, strategy.papers)),
            differs=known["differs"],
            exact=badge.startswith(EXACT),
        )
        if known["parent"]:
            graph.add_edge(known["parent"], name)
    return graph


def branch_of(name: str) -> str:
    """The branch that a strategy or the nearest of its parents in the family begins; else the family."""
    known, family = origins.lineage(), strategies()[name].family
    while name in known and strategies()[name].family == family:
        if known[name]["branch"]:
            return known[name]["branch"]
        name = known[name]["parent"]
    return FAMILIES[family]
