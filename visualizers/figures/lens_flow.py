"""Figures of information flow routes: the layered graph of a route, the heads of one layer, and the
contribution of each token to each position.
"""

import networkx as nx
import plotly.graph_objects as go

from decoders.lenses.frame import LensFrame
from decoders.trace.events import Depend
from visualizers.figures.charts import counted, framed, greys
from visualizers.figures.lens_grid import CELL, LEFT, label, names, shown, word
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain
from visualizers.graphs.flow_routes import TAU, routes

FIGURES = ("flow_routes", "head_split", "token_flow")
ROW, BANDS = 40, 8  # pixels of a layer; number of shades of a kind of edge
FAINTEST = 0.25
UP = {"state": 0.0, "attention": -0.62, "mlp": -0.28}  # height of a node relative to its layer's state
SIDE = {"state": 0.0, "attention": 0.0, "mlp": 0.22}
MARKS = {"state": ("circle", 7), "attention": ("diamond", 6), "mlp": ("square", 6)}
KINDS = {  # kind of edge: (role of its colour, name)
    "residual": ("soft", "residual stream"),
    "attention": ("accepted", "attention"),
    "mlp": ("amber", "MLP"),
}


def flow_routes(
    frame: LensFrame,
    look: str = "light",
    position: int = -1,
    tau: float = TAU,
    renormalise: bool = True,
) -> go.Figure:
    """The route of the prediction at `position`: layers from the bottom up, tokens from left to right."""
    colours, graph = theme(look), routes(frame, position, tau, renormalise)
    at = graph.graph["position"]
    reached = sorted({place for _, place in graph.nodes(data="position")})
    first = max(0, min(frame.data["first"], at))
    columns = list(range(first, at + 1))
    earlier = any(place < first for place in reached)
    x = {place: place - first + int(earlier) if place >= first else 0 for place in reached}
    words = [*(["earlier"] if earlier else []), *(label(frame, place) for place in columns)]
    figure = framed(
        colours,
        "Information flow route of one prediction",
        caption(frame, graph, reached, tau, renormalise),
        120 + ROW * len(frame.levels),
        width=LEFT + CELL * max(len(words), 8) + 60,
        xaxis=names(words) | {"tickangle": 0, "range": [-0.6, max(len(words), 8) - 0.2]},
        yaxis=names(frame.levels) | {"range": [-0.6, len(frame.levels) - 0.4]},
    )
    figure.update_layout(
        margin={"t": 70, "b": 34, "l": LEFT, "r": 20},
        legend={"orientation": "h", "y": 1.0, "yref": "paper", "yanchor": "bottom", "x": 0},
    )
    for kind, (role, title) in KINDS.items():
        own = [(a, b, e) for a, b, e in graph.edges(data=True) if e["kind"] == kind]
        figure.add_traces(edges(graph, own, x, colours.colour(role), title))
    for kind in MARKS:
        figure.add_trace(marks(frame, graph, kind, x, colours))
    return figure


def place_of(node: dict, x: dict[int, float]) -> tuple[float, float]:
    """The coordinates (x, y) of a node."""
    return x[node["position"]] + SIDE[node["kind"]], node["layer"] + UP[node["kind"]]


def edges(
    graph: nx.MultiDiGraph, own: list[tuple], x: dict[int, float], colour: str, title: str
) -> list[go.Scatter]:
    """The edges of one kind, stronger ones darker, each with an invisible hover point at its middle."""
    made, hovers = [], []
    for band in range(BANDS):
        xs, ys = [], []
        for a, b, edge in own:
            if min(BANDS - 1, int(edge["weight"] * BANDS)) == band:
                (x0, y0), (x1, y1) = (place_of(graph.nodes[n], x) for n in (a, b))
                xs += [x0, x1, None]
                ys += [y0, y1, None]
        if xs:
            strength = max(FAINTEST, (band + 0.5) / BANDS)
            line = {"color": colour, "width": 1 + 2 * strength}
            made.append(go.Scatter(x=xs, y=ys, mode="lines", line=line, opacity=strength, hoverinfo="skip"))
    for a, b, edge in own:
        (x0, y0), (x1, y1) = (place_of(graph.nodes[n], x) for n in (a, b))
        heads = f"<br>heads {edge['heads']}" if edge.get("heads") else ""
        source, target = graph.nodes[a], graph.nodes[b]
        words = f"{title} {edge['weight']:.2f}<br>{node_text(source)} → {node_text(target)}{heads}"
        hovers.append(((x0 + x1) / 2, (y0 + y1) / 2, words))
    for one in made:
        one.update(legendgroup=title, showlegend=False)
    if hovers:
        xs, ys, words = zip(*hovers, strict=True)
        dot = {"size": 9, "color": colour, "opacity": 0}
        made.append(
            go.Scatter(
                x=xs, y=ys, mode="markers", marker=dot, hovertext=words, hoverinfo="text", showlegend=False
            )
        )
        line = {"color": colour, "width": 3}
        made.append(go.Scatter(x=[None], y=[None], mode="lines", line=line, name=title, legendgroup=title))
    return made


def node_text(node: dict) -> str:
    """A node's kind, layer and token, as text."""
    kind = {"state": "state", "attention": "attention", "mlp": "MLP"}[node["kind"]]
    return f"{kind} {node['layer']} at {plain(shown(node['text']))} ({node['position']})"


def marks(frame: LensFrame, graph: nx.MultiDiGraph, kind: str, x: dict, colours: Theme) -> go.Scatter:
    """The nodes of one kind, with their hover texts."""
    own = [node for _, node in graph.nodes(data=True) if node["kind"] == kind]
    symbol, size = MARKS[kind]
    verb = "says" if kind == "state" else "promotes"
    return go.Scatter(
        x=[place_of(node, x)[0] for node in own],
        y=[place_of(node, x)[1] for node in own],
        mode="markers",
        marker={
            "symbol": symbol,
            "size": size,
            "color": colours.surface["bg"] if kind == "mlp" else colours.surface["text"],
            "line": {"color": colours.surface["text"], "width": 1.2},
        },
        hovertext=[
            node_text(node) + (f"<br>{verb} {plain(shown(node['says']))}" if node["says"] else "")
            for node in own
        ],
        hoverinfo="text",
        showlegend=False,
    )


def caption(
    frame: LensFrame, graph: nx.MultiDiGraph, reached: list[int], tau: float, renormalise: bool
) -> str:
    """What the graph shows, in words."""
    at = graph.graph["position"]
    following = token(frame, at + 1) if at + 1 < len(frame.tokens) else "the next token"
    threshold = "over tau, head by head; the others of a state then sum to 1" if renormalise else "over tau"
    ends = sum(node["layer"] == 0 for _, node in graph.nodes(data=True))
    return (
        f"The route of the prediction after {token(frame, at)} ({following}), tau {tau:g}: "
        f"{counted(graph.number_of_edges(), 'edge')} {threshold}. It starts from {counted(ends, 'token')} of "
        f"{at + 1}. Circles are states, diamonds attention, squares MLPs; hover over an edge for its heads."
    )


def token(frame: LensFrame, position: int) -> str:
    """The token at a position, not shortened."""
    return shown(frame.words.get(frame.tokens[position], ""))


def head_split(frame: LensFrame, look: str = "light", position: int = -1, layer: int = 1) -> go.Figure:
    """The heads of one layer at one position: attention weights, and contributions of the attended tokens."""
    colours, flow, pattern = theme(look), frame.data["flow"], frame.data["pattern"]
    count = len(frame.tokens)
    at = position + count if position < 0 else position
    at, row = min(max(at, 0), count - 1), min(layer, len(pattern)) - 1
    first = max(0, min(frame.data["first"], at))
    attended, contributed = (one[row, :, at, first : at + 1].tolist() for one in (pattern, flow.attention))
    heads = [f"head {n}" for n in range(1, len(attended) + 1)]
    columns = [label(frame, place) for place in range(first, at + 1)]
    figure = framed(
        colours,
        f"Layer {row + 1}: attention and contribution of each head",
        "Above, the attention weights of each head at the position; below, how much each attended token "
        "contributes to the state through that head; in each half the strongest shade is the largest value. "
        f"The two often disagree: {disagreement(attended, contributed, columns)}",
        150 + 2 * 22 * len(heads),
        width=LEFT + CELL * max(len(columns), 8) + 60,
        dragmode=False,
        xaxis=names(columns) | {"tickangle": 0},
        yaxis=names(heads) | {"domain": [0.54, 1.0], "title": {"text": "attention"}},
        yaxis2=names(heads) | {"domain": [0.0, 0.46], "title": {"text": "contribution"}, "anchor": "x"},
        coloraxis=scale(max(map(max, attended)), colours),
        coloraxis2=scale(max(max(map(max, contributed)), 1e-6), colours),
    )
    figure.update_layout(margin={"t": 60, "b": 34, "l": LEFT, "r": 20})
    for axis, rows, colour, what in (
        ("y", attended, "coloraxis", "attention"),
        ("y2", contributed, "coloraxis2", "contribution"),
    ):
        figure.add_heatmap(
            z=rows,
            yaxis=axis,
            coloraxis=colour,
            xgap=1,
            ygap=1,
            hoverinfo="text",
            hovertext=[
                [f"{head}, {columns[n]}: {what} {x:.3f}" for n, x in enumerate(one)]
                for head, one in zip(heads, rows, strict=True)
            ],
        )
    return figure


def disagreement(attended: list[list[float]], contributed: list[list[float]], columns: list[str]) -> str:
    """A sentence on the first head whose largest attention and contribution are at different tokens."""
    for head, (attention, contribution) in enumerate(zip(attended, contributed, strict=True), 1):
        a, b = attention.index(max(attention)), contribution.index(max(contribution))
        if a != b and max(contribution) > 0:
            return f"head {head} attends most to {columns[a]}, but {columns[b]} contributes most."
    return "not at this position, where in every head the token with the most attention contributes most."


def scale(largest: float, colours: Theme) -> dict:
    """A colour axis of greys from 0 to `largest`."""
    greyed = greys([colours.surface["bg"], *colours.amounts[1:4]])
    return {"cmin": 0, "cmax": largest, "colorscale": greyed, "showscale": False}


def token_flow(frame: LensFrame, look: str = "light") -> go.Figure:
    """The contribution of each token to each position's last state through all layers; rows sum to 1."""
    colours, weights = theme(look), frame.of(Depend, kind="flow")
    targets = sorted({e.target for e in weights})
    columns = list(range(targets[0], len(frame.tokens)))
    share = {(e.target, e.source): e.weight for e in weights}
    rows = [[share.get((target, source)) for source in columns] for target in targets]
    last = targets[-1]
    strongest = max((share[last, source], source) for source in range(last + 1))
    figure = framed(
        colours,
        "Which tokens each position comes from",
        "The product of all layers' weights between positions, without a threshold: a row is a position, a "
        f"column a token that contributes to it. {strongest[0]:.0%} of the last position comes from "
        f"{label(frame, strongest[1])}.",
        110 + 20 * len(targets),
        width=LEFT + CELL * max(len(columns), 8) + 60,
        dragmode=False,
        xaxis=names([label(frame, at) for at in columns]) | {"side": "top", "tickangle": 0},
        yaxis=names([word(frame, frame.tokens[at]) for at in targets])
        | {"range": [len(targets) - 0.5, -0.5]},
        coloraxis=scale(max(x for row in rows for x in row if x is not None), colours),
    )
    figure.update_layout(margin={"t": 70, "b": 14, "l": LEFT, "r": 20})
    figure.add_heatmap(
        z=rows,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hoverinfo="text",
        hovertext=[
            [
                f"{label(frame, target)} ({target}) gets {share.get((target, source), 0):.3f} from "
                f"{label(frame, source)} ({source})"
                for source in columns
            ]
            for target in targets
        ],
    )
    return figure
