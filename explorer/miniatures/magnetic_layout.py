"""In which direction do the edges of a graph point?

The magnetic Laplacian turns each directed edge into a rotation by an angle of 2 pi q. The phases of its
lowest eigenvector then grow along the edges: with q = 0 the direction is lost, and with a small q the graph
is laid out from its beginning to its end. The graph is that of a stored run: the tokens that beam search
considered, darker the later they are in the text. The paper feeds such phases to a transformer as
positions; here they place points.
"""

import networkx as nx
import numpy as np

from explorer.miniatures import Panel, Story

PAPER = "transformers-meet-directed-graphs"
POTENTIALS = (0.0, 0.01, 0.02, 0.04, 0.06)
LONGEST = 8  # tokens after the prompt; with more, phases would exceed half a turn


def story() -> Story:
    """The layout for several potentials, and the share of edges that it draws in the right direction."""
    graph = beams()
    depth = np.array([graph.nodes[node]["depth"] for node in graph])
    number = {node: at for at, node in enumerate(graph)}
    edges = [(number[a], number[b]) for a, b in graph.edges]
    frames = [layout(graph, q) for q in POTENTIALS]
    ordered = [in_order(frame[:, 0], edges) for frame in frames]
    panel = Panel(
        "Tokens of a beam search, placed by phase",
        frames,
        [f"q = {q:g}" for q in POTENTIALS],
        shades=[depth / depth.max()] * len(frames),
        edges=edges,
    )
    return Story(
        [panel],
        [
            f"With q = 0, {ordered[0]:.0%} of the {len(edges)} edges run from left to right; with "
            f"q = {POTENTIALS[-1]:g}, {ordered[-1]:.0%} do.",
        ],
    )


def beams() -> nx.DiGraph:
    """The token tree of the stored run's beam search, up to LONGEST tokens; nodes have a `depth`."""
    from explorer.catalog.recorded_runs import traces

    whole = traces()[0].graph("tokens")
    kept = [node for node, about in whole.nodes(data=True) if 0 <= about["depth"] <= LONGEST]
    return nx.DiGraph(whole.subgraph(kept))


def magnetic_laplacian(graph: nx.DiGraph, q: float) -> np.ndarray:
    """`I - D^-1/2 A_s D^-1/2 * exp(2 pi i q (A - A^T))` [N, N], Hermitian, with A_s = (A + A^T) / 2 made
    symmetric and D its row sums (Geisler et al., 2023, section 3).
    """
    a = nx.to_numpy_array(graph, weight=None)
    symmetric = ((a + a.T) > 0).astype(float)
    scale = 1 / np.sqrt(symmetric.sum(1))
    turned = np.exp(2j * np.pi * q * (a - a.T))
    return np.eye(len(a)) - scale[:, None] * symmetric * scale * turned


def layout(graph: nx.DiGraph, q: float) -> np.ndarray:
    """Positions [N, 2]: x is the phase of the lowest eigenvector relative to the root's, in turns; y is the
    component of the next eigenvector in phase with it, scaled to at most 1.
    """
    _, vectors = np.linalg.eigh(magnetic_laplacian(graph, q))
    lowest, next_one = vectors[:, 0], vectors[:, 1]
    root = next(at for at, node in enumerate(graph) if graph.in_degree(node) == 0)
    # The phase falls along the edges, hence the minus sign; it is counted from the root's.
    phase = -np.angle(lowest * np.conj(lowest[root])) / (2 * np.pi)
    height = np.real(next_one * np.conj(lowest)) / np.abs(lowest)
    return np.stack([phase, height / np.abs(height).max()], 1)


def in_order(x: np.ndarray, edges: list[tuple[int, int]]) -> float:
    """The share of edges that lead to the right, for positions x [N]."""
    return float(np.mean([x[b] - x[a] > 1e-9 for a, b in edges]))
