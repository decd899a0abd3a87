"""The map of papers: papers at the left, then mechanisms and their parts, and implementations at the right.

Takes a NetworkX graph whose nodes have `column`, `text`, `says` and `link`, strategies also `family`, and
whose edges of the kind "route" lead from one column to a later one; `link` is an address that a click on the
node's name opens, "" for none.
"""

import textwrap
from itertools import groupby

import networkx as nx
import plotly.graph_objects as go

from visualizers.figures.charts import LINE, counted, framed
from visualizers.figures.theme import Theme, theme
from visualizers.figures.traces import plain
from visualizers.figures.trees import CURVE

TITLES = ("papers", "mechanisms", "parts", "implemented here")
# Left and right end of each column in pixels, maximum characters of a name, and position of the names.
PLACES = (
    (292, 298, 46, "middle left"),
    (420, 526, 19, "middle center"),
    (650, 802, 26, "middle center"),
    (898, 904, 34, "middle right"),
)
WIDTH, ROW, TOP, SIZE = 1100, 14, 64, 10  # pixels of the picture, of a row, above the rows, of letters
BESIDE = {"middle left": -5, "middle center": 0, "middle right": 5}  # pixels from a mark to its name
MARKS = {"works": "circle", "miniature": "circle-open", "card": "circle-open-dot"}


def paper_map(graph: nx.DiGraph, order: list[list[str]], look: str = "light", all_of: int = 0) -> go.Figure:
    """The nodes of `graph`, ordered as in `order` (see visualizers.graphs.layered), which may have more
    nodes; `all_of`: the number of all papers. Raises Refusal with one sentence for an unknown look.
    """
    colours = theme(look)
    names = [[name for name in column if name in graph] for column in order]
    rows = max(max(map(len, names)), 6)
    y = {name: (at + 0.5) * rows / len(own) for own in names for at, name in enumerate(own)}
    figure = framed(
        colours,
        "Papers, mechanisms, parts and implementations",
        caption(graph, names, all_of),
        TOP + ROW * rows + 16,
        width=WIDTH,
        dragmode=False,
        showlegend=False,
        xaxis={"visible": False, "range": [0, WIDTH], "fixedrange": True},
        yaxis={"visible": False, "range": [rows, 0], "fixedrange": True},
    )
    figure.update_layout(margin={"t": TOP, "b": 16, "l": 0, "r": 0})
    figure.add_traces(routes(graph, y, colours))
    for column, own in enumerate(names):
        left, right, letters, where = PLACES[column]
        figure.add_traces(nodes(graph, own, y, colours, (left + right) / 2, letters, where))
        title = {"text": f"<b>{TITLES[column]}</b>", "x": (left + right) / 2, "xref": "x", "yref": "paper"}
        anchor = {"middle left": "right", "middle right": "left"}.get(where, "center")
        figure.add_annotation(title, y=1, yanchor="bottom", xanchor=anchor, showarrow=False)
    return figure


def routes(graph: nx.DiGraph, y: dict[str, float], colours: Theme) -> list[go.Scatter]:
    """All edges as smooth curves; those that lead to a strategy in the colour of its family."""
    edges = [(a, b) for a, b, kind in graph.edges(data="kind") if kind == "route"]
    edges.sort(key=lambda edge: graph.nodes[edge[1]].get("family", ""))
    made = []
    for family, some in groupby(edges, key=lambda edge: graph.nodes[edge[1]].get("family", "")):
        xs, ys = [], []
        for a, b in some:
            x0, x1 = (PLACES[graph.nodes[name]["column"]][end] for name, end in ((a, 1), (b, 0)))
            xs += [*(x0 + (x1 - x0) * t for t, _ in CURVE), None]
            ys += [*(y[a] + (y[b] - y[a]) * eased for _, eased in CURVE), None]
        line = {"color": colours.family.get(family, colours.surface["soft"]), "width": 0.8}
        made.append(go.Scatter(x=xs, y=ys, mode="lines", line=line, opacity=0.45, hoverinfo="skip"))
    return made


def nodes(
    graph: nx.DiGraph, own: list[str], y: dict[str, float], colours: Theme, x: float, letters: int, where: str
) -> list[go.Scatter]:
    """The names of a column, with links where there are any, and marks with hover texts."""
    known = [graph.nodes[name] for name in own]
    named = where == "middle center"
    marker = {
        "symbol": [MARKS.get(node.get("status"), "circle") for node in known],
        "size": 14 if named else 6,
        "opacity": 0 if named else 1,
        "color": [colours.family.get(node.get("family"), colours.surface["text"]) for node in known],
    }
    at = {"x": [x] * len(own), "y": [y[name] for name in own]}
    words = [linked(cut(node["text"], letters), node["link"]) for node in known]
    says = ["<br>".join(map(plain, textwrap.wrap(node["says"], LINE))) for node in known]
    font = {"size": SIZE, "color": colours.surface["text"]}
    return [
        go.Scatter(at, mode="markers", marker=marker, hovertext=says, hoverinfo="text"),
        go.Scatter(
            at | {"x": [x + BESIDE[where]] * len(own)},
            mode="text",
            text=words,
            textposition=where,
            textfont=font,
            hoverinfo="skip",
        ),
    ]


def cut(text: str, letters: int) -> str:
    """A name cut to this many characters."""
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def linked(words: str, link: str) -> str:
    """A name, as a link in the same window if `link` is not empty."""
    return f'<a href="{link}" target="_self">{plain(words)}</a>' if link else plain(words)


def caption(graph: nx.DiGraph, names: list[list[str]], all_of: int) -> str:
    """The map's description in words."""
    papers, _, parts, running = map(len, names)
    of = f" of {all_of}" if papers < all_of else ""
    return (
        f"{counted(papers, 'paper')}{of} at the left. Lines lead from a paper to a mechanism, to its parts "
        f"({parts}) and to the strategies, lenses, memories, experiments and models that run here "
        f"({running}). A filled circle is a paper that works here, a hollow one a miniature, a dotted one a "
        "card. Strategies and the lines to them have the colours of their families. Blue names are links; "
        "search and filters above choose what is shown. Logits "
        "processors, which most strategies take, are left out."
    )
