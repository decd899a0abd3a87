"""The route of a prediction as a NetworkX graph: which states, heads and MLPs information flows through.

Takes the frame of the lens `flow` (decoders/lenses/flow.py); draws nothing.
"""

import math

import networkx as nx

from decoders.lenses.frame import LensFrame
from decoders.refusal import Refusal
from decoders.trace.events import Distribution

TAU = 0.04
NAMED = 3  # tokens named at a node
HEADS = 0.005  # heads with at least this share of an edge are named


def routes(
    frame: LensFrame, position: int = -1, tau: float = TAU, renormalise: bool = True
) -> nx.MultiDiGraph:
    """What flows to the last state at `position` (from the end if negative), along all edges above the
    threshold: a depth-first walk from there downwards. No weights are multiplied.

    A node has `kind` ("state", "attention", "mlp"), `layer` (0: the embeddings), `position`, `text` (the
    token there) and `says` (what it would predict, with ▲ and ▼ where a token rose or fell since the state
    below). An edge has `kind` ("attention", "residual", "mlp"), `weight`, and of attention its `heads`. The
    residual edge of a position and its attention to itself join the same two nodes. Refusal with one
    sentence if there is no such position.
    """
    count = len(frame.tokens)
    at = position + count if position < 0 else position
    if not 0 <= at < count:
        raise Refusal(f"The text has {count} tokens; choose a position from 0 to {count - 1}, or -1.")
    flow = frame.data["flow"].over(tau, renormalise)
    layers = len(flow.mlp)
    graph = nx.MultiDiGraph(kind="flow routes", tau=tau, renormalise=renormalise, position=at)
    waiting, texts = [("state", layers, at)], readouts(frame)
    while waiting:
        here = waiting.pop()
        if named(here) in graph and "kind" in graph.nodes[named(here)]:
            continue
        kind, layer, place = here
        text = frame.words.get(frame.tokens[place], "")
        says = texts.get((kind, layer, place), "")
        graph.add_node(named(here), kind=kind, layer=layer, position=place, text=text, says=says)
        for source, edge in incoming(flow, here):
            graph.add_edge(named(source), named(here), **edge)
            waiting.append(source)
    return graph


Node = tuple[str, int, int]  # kind, layer, position


def named(node: Node) -> str:
    """`state 3 5`: after three layers at position 5."""
    return " ".join(map(str, node))


def incoming(flow, node: Node) -> list[tuple[Node, dict]]:
    """The edges into a node that are above the threshold: (source, attributes)."""
    kind, layer, at = node
    if layer == 0:
        return []
    below, row = ("state", layer - 1, at), layer - 1
    into_mlp = below if flow.parallel else ("attention", layer, at)
    if kind == "mlp":
        return [(into_mlp, {"kind": "mlp", "weight": float(flow.mlp[row, at])})]
    edges = []
    if kind == "state":
        edges = [(("mlp", layer, at), {"kind": "mlp", "weight": float(flow.mlp[row, at])})]
        if not flow.parallel:
            edges.append((("attention", layer, at), {"kind": "residual", "weight": float(flow.mid[row, at])}))
    if kind == "attention" or flow.parallel:
        edges.append((below, {"kind": "residual", "weight": float(flow.residual[row, at])}))
        heads = flow.attention[row, :, at, : at + 1]  # [H, at + 1]
        for place in heads.sum(0).nonzero()[:, 0].tolist():
            weight = float(heads[:, place].sum())
            edge = {"kind": "attention", "weight": weight, "heads": split(heads[:, place].tolist())}
            edges.append((("state", layer - 1, place), edge))
    return [(source, edge) for source, edge in edges if edge["weight"] > 0]


def split(weights: list[float]) -> str:
    """`2: 0.14, 5: 0.03`: what each head brings, heads counted from 1."""
    known = sorted(((w, n) for n, w in enumerate(weights, 1) if w >= HEADS), reverse=True)
    return ", ".join(f"{n}: {w:.2f}" for w, n in known)


def readouts(frame: LensFrame) -> dict[Node, str]:
    """The text of each node: its most likely tokens, for a state with their changes of rank since the state
    below.
    """
    level = {name: at for at, name in enumerate(frame.levels)}
    tops = {(e.view, level[e.level], e.node): [int(t) for t, _ in e.top] for e in frame.of(Distribution)}
    events = {(e.view, level[e.level], e.node): e for e in frame.of(Distribution)}
    texts = {}
    for (view, at, place), event in events.items():
        below = tops.get(("state", at - 1, place), []) if view == "state" else None
        words = [
            f"{moved(int(token), rank, below)}{frame.words.get(int(token), '').strip()} {math.exp(p):.2f}"
            for rank, (token, p) in enumerate(event.top[:NAMED])
        ]
        texts[view, at, place] = " · ".join(words)
    return texts


def moved(token: int, rank: int, below: list[int] | None) -> str:
    """▲ for a token that stands higher than in the state below, ▼ for one that stands lower."""
    if not below:
        return ""
    before = below.index(token) if token in below else len(below)
    return "▲ " if before > rank else "▼ " if before < rank else ""
