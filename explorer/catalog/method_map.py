"""The map of methods as a NetworkX graph: which paper is where, and which strategies share a part.

Nodes are papers, strategies, the parts that they are composed of, lenses, experiments and families;
everything comes from declarations. Knows no trace.
"""

import networkx as nx

from decoders.lenses.registry import lenses
from decoders.memory_options import memories
from decoders.registry import FAMILIES, strategies
from explorer.catalog import origins, papers
from explorer.experiments import experiments

EXACT = ("equal to generate", "lossless", "exact")  # how badges begin that promise plain decoding's result


def method_map() -> nx.DiGraph:
    """A node has `kind` ("strategy", "paper", "part", "lens", "memory", "experiment", "family") and `text`, a
    paper its `status`, a part what it `says`. An edge has `kind`: a strategy "realises" papers, "has" parts
    and "belongs to" a family; a lens or a memory "realises" and an experiment "repeats" papers. Parts are
    those of a strategy's default parameters.
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
    for name, lens in lenses().items():
        graph.add_node(f"lens {name}", kind="lens", text=lens.title)
        graph.add_edges_from((f"lens {name}", f"paper {slug}", {"kind": "realises"}) for slug in lens.papers)
    for name, memory in memories().items():
        node = f"memory {name}"
        graph.add_node(node, kind="memory", text=memory.title)
        graph.add_edges_from((node, f"paper {slug}", {"kind": "realises"}) for slug in memory.papers)
    for name, experiment in experiments().items():
        node = f"experiment {name}"
        graph.add_node(node, kind="experiment", text=name)
        graph.add_edges_from((node, f"paper {slug}", {"kind": "repeats"}) for slug in experiment.papers)
    return graph


def family_tree() -> nx.DiGraph:
    """What grew from what: a node for each strategy with `title`, `family`, `year` ("" if unknown), `differs`
    and whether it is `exact` by default; edges lead from parents to children.
    """
    graph = nx.DiGraph(kind="family tree")
    for name, strategy in strategies().items():
        known = origins.lineage().get(name, {"parent": "", "differs": strategy.summary})
        badge = strategy.badge({p.name: p.default for p in strategy.parameters})
        graph.add_node(
            name,
            title=strategy.title,
            family=strategy.family,
            year=origins.first_year(origins.sources(name, strategy.papers)),
            differs=known["differs"],
            exact=badge.startswith(EXACT),
        )
        if known["parent"]:
            graph.add_edge(known["parent"], name)
    return graph
