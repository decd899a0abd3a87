"""A graph as a file: GraphML, GEXF, DOT and node-link JSON."""

import json
from collections.abc import Callable
from pathlib import Path

import networkx as nx

from decoders import files
from decoders.refusal import Refusal


def graphml(graph: nx.DiGraph) -> str:
    """GraphML, as Gephi, yEd and Cytoscape read it."""
    return "\n".join(nx.generate_graphml(plain(graph)))


def gexf(graph: nx.DiGraph) -> str:
    """GEXF, as Gephi reads it."""
    return "\n".join(nx.generate_gexf(plain(graph)))


def dot(graph: nx.DiGraph) -> str:
    """DOT, as Graphviz reads it: left to right, each node with its text."""
    lines = ["digraph {", "  rankdir=LR;", "  node [shape=box];"]
    for node, known in plain(graph).nodes(data=True):
        named = {"label": known.get("text", str(node)), **known}
        lines.append(f"  {quoted(node)} [{', '.join(f'{k}={quoted(v)}' for k, v in named.items())}];")
    for a, b, known in plain(graph).edges(data=True):
        attributes = ", ".join(f"{k}={quoted(v)}" for k, v in known.items())
        lines.append(f"  {quoted(a)} -> {quoted(b)}{f' [{attributes}]' if attributes else ''};")
    return "\n".join([*lines, "}"])


def node_link(graph: nx.DiGraph) -> str:
    """Node-link JSON, as networkx.node_link_graph and D3 read it."""
    return json.dumps(nx.node_link_data(graph, edges="links"), allow_nan=False)


FORMATS: dict[str, Callable[[nx.DiGraph], str]] = {
    ".graphml": graphml,
    ".gexf": gexf,
    ".dot": dot,
    ".json": node_link,
}


def save(graph: nx.DiGraph, path: str | Path) -> None:
    """Writes a graph in the format of the file name's extension. Raises Refusal with one sentence for
    others.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise Refusal(f"A graph is saved as {', '.join(FORMATS)}; {path.name} ends in none of them.")
    files.write(path, FORMATS[path.suffix](graph))


def plain(graph: nx.DiGraph) -> nx.DiGraph:
    """A copy whose attributes are numbers, booleans and strings that XML can hold."""
    made = type(graph)(**_plain(graph.graph))  # two nodes may have several edges
    made.add_nodes_from((node, _plain(known)) for node, known in graph.nodes(data=True))
    made.add_edges_from((a, b, _plain(known)) for a, b, known in graph.edges(data=True))
    return made


def _plain(known: dict) -> dict:
    return {name: _value(value) for name, value in known.items() if value is not None}


def _value(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "".join(c if c in "\t\n\r" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def quoted(value: object) -> str:
    """A DOT string."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{text}"'
