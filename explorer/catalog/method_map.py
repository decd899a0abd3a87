"""The map of methods as a NetworkX graph: which paper is where, and which strategies share a part.

Nodes are papers, strategies, the parts that they are composed of, experiments and families; everything comes
from declarations. Knows no trace.
"""

import networkx as nx

from decoders.registry import FAMILIES, strategies
from explorer.catalog import papers
from explorer.experiments import experiments


def method_map() -> nx.DiGraph:
    """A node has `kind` ("strategy", "paper", "part", "experiment", "family") and `text`, a paper its
    `status`, a part what it `says`. An edge has `kind`: a strategy "realises" papers, "has" parts and
    "belongs to" a family; an experiment "repeats" papers. Parts are those of a strategy's default parameters.
    """
    graph = nx.DiGraph(kind="methods")
    for name, title in FAMILIES.items():
        graph.add_node(f"family {name}", kind="family", text=title)
    for row in papers.papers():
        graph.add_node(f"paper {row['slug']}", kind="paper", text=row["title"], status=row["status"])
    for name, strategy in strategies().items():
        node = f"strategy {name}"
        graph.add_node(node, kind="strategy", text=strategy.title)
        graph.add_edge(node, f"family {strategy.family}", kind="belongs to")
        graph.add_edges_from((node, f"paper {slug}", {"kind": "realises"}) for slug in strategy.papers)
        for part in strategy.parts({p.name: p.default for p in strategy.parameters}):
            piece = f"part {part.kind}: {part.name}"
            graph.add_node(piece, kind="part", text=f"{part.kind}: {part.name}", says=part.says)
            graph.add_edge(node, piece, kind="has")
    for name, experiment in experiments().items():
        node = f"experiment {name}"
        graph.add_node(node, kind="experiment", text=name)
        graph.add_edges_from((node, f"paper {slug}", {"kind": "repeats"}) for slug in experiment.papers)
    return graph
