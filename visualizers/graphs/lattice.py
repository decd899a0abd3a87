"""The lattice of a search that merges: merged nodes are one node here, and its texts are counted."""

import networkx as nx

from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from visualizers.graphs.token_tree import search

END = "finished"


def lattice(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """The search graph with merged nodes as one: a layered, directed, acyclic graph.

    Graph attributes: `root` (the end of the prompt), `ends` (nodes that finish a text), `texts` (paths from
    the root to an end; two of them may read the same), `shared` (nodes that every such path has, in order).
    Node attributes as in the token tree, and `stands_for` (the merged nodes, itself included), `layer` (the
    length of the longest path from the root) and `texts` (paths from the root to it). Raises Refusal with
    one sentence if the merges form a cycle.
    """
    return merged(search(trace, steps), len(trace.prompt) - 1)


def merged(graph: nx.DiGraph, root: int) -> nx.DiGraph:
    """The lattice of a part of the token tree that begins with `root`: see `lattice` for its attributes and
    what is raised.
    """
    became = {
        n: known["into"]
        for n, known in graph.nodes(data=True)
        if known["status"] == "merged" and known.get("into") in graph
    }
    merges = nx.DiGraph(became.items())
    title = graph.graph.get("title", "this lane")
    circles = Refusal(f"What {title} has merged contains cycles, so it is not a lattice; try 'search'.")
    if not nx.is_directed_acyclic_graph(merges):
        raise circles
    stands = {node: node for node in graph}
    for node in reversed(list(nx.topological_sort(merges))):
        stands[node] = stands[became[node]] if node in became else node
    result = nx.DiGraph(**graph.graph | {"kind": "lattice", "root": root})
    for node, known in graph.nodes(data=True):
        if stands[node] == node:
            result.add_node(node, **known, stands_for=[])
    for node in graph:
        result.nodes[stands[node]]["stands_for"].append(node)
    tree = ((a, b) for a, b, known in graph.edges(data=True) if not known.get("merge"))
    result.add_edges_from((stands[a], stands[b]) for a, b in tree if stands[a] != stands[b])
    if not nx.is_directed_acyclic_graph(result):
        raise circles
    ends = [n for n in result if any(graph.nodes[m]["status"] == END for m in result.nodes[n]["stands_for"])]
    result.graph["ends"] = ends
    _count(result, root, ends)
    return result


def _count(graph: nx.DiGraph, root: int, ends: list[int]) -> None:
    """Counts paths and layers in one topological pass, then finds what all texts share: the nodes that
    dominate every end.
    """
    texts, layer = dict.fromkeys(graph, 0), dict.fromkeys(graph, 0)
    texts[root] = 1
    for node in nx.topological_sort(graph):
        for after in graph.successors(node):
            texts[after] += texts[node]
            layer[after] = max(layer[after], layer[node] + 1)
    nx.set_node_attributes(graph, texts, "texts")
    nx.set_node_attributes(graph, layer, "layer")
    graph.graph["texts"] = sum(texts[end] for end in ends)
    graph.graph["shared"] = _shared(graph, root, ends)


def _shared(graph: nx.DiGraph, root: int, ends: list[int]) -> list[int]:
    if not ends:
        return []
    joined = nx.DiGraph(graph.edges)
    joined.add_edges_from((end, END) for end in ends)
    above = nx.immediate_dominators(joined, root)
    shared, node = [], END
    while node != root:
        node = above[node]
        if node != root:
            shared.append(node)
    return shared[::-1]
