"""Syntax trees over the same leaves, stacked, and bars side by side."""

import plotly.graph_objects as go

from visualizers.figures.charts import ROW, framed, hover, value_text
from visualizers.figures.theme import MONO, Theme
from visualizers.figures.traces import plain

LEAF, STEP, SIDE = 44, 34, 30  # pixels of a leaf's column, of a level of a tree, and of both margins
LETTERS = 7  # characters of a leaf's text


def trees(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """Trees above their leaves: nodes at the middle of their span, wrong ones red, dashed and crossed."""
    leaves, drawn = picture["leaves"], picture["trees"]
    levels = [depth_of(tree["nodes"]) + 2 for tree in drawn]
    counts = [f"{tree['label']}: {len(tree['nodes'])} nodes" + lacking(tree["nodes"]) for tree in drawn]
    figure = framed(
        colours,
        picture["title"],
        f"{picture['title']}: {picture['says']}. {'; '.join(counts)}. The leaves: {' '.join(leaves)}.",
        70 + STEP * sum(levels),
        width=2 * SIDE + LEAF * len(leaves),
        xaxis={"range": [-0.6, len(leaves) - 0.4], "visible": False, "fixedrange": True},
        yaxis={"range": [-0.6, sum(levels)], "visible": False, "fixedrange": True},
        showlegend=False,
        hovermode="closest",
        dragmode=False,
    )
    figure.update_layout(margin={"l": SIDE, "r": SIDE, "t": 40, "b": 16})
    below = sum(levels)
    for tree, high in zip(drawn, levels, strict=True):
        below -= high
        one_tree(figure, tree, leaves, below, high, colours)
    return figure


def lacking(nodes: list[list]) -> str:
    """The number of wrong nodes in words; "" for none."""
    count = sum(node[3] for node in nodes)
    return f", {count} of them wrong" if count else ""


def heights(nodes: list[list]) -> tuple[list[int], list[int | None], dict[int, int]]:
    """For nodes from the top down: (the height of each above the leaves, its parent, leaf -> its parent)"""
    parents: list[int | None] = []
    leaf_parents: dict[int, int] = {}
    open_nodes: list[int] = []
    for at, (_, first, last, _) in enumerate(nodes):
        while open_nodes and not (nodes[open_nodes[-1]][1] <= first and last <= nodes[open_nodes[-1]][2]):
            open_nodes.pop()
        parents.append(open_nodes[-1] if open_nodes else None)
        open_nodes.append(at)
        leaf_parents.update(dict.fromkeys(range(first, last), at))  # the deepest comes last
    high = [1] * len(nodes)
    for at in range(len(nodes) - 1, -1, -1):
        if parents[at] is not None:
            high[parents[at]] = max(high[parents[at]], high[at] + 1)
    return high, parents, leaf_parents


def depth_of(nodes: list[list]) -> int:
    """The height of the highest node; 0 without any."""
    return max(heights(nodes)[0], default=0)


def one_tree(
    figure: go.Figure, tree: dict, leaves: list[str], below: int, levels: int, colours: Theme
) -> None:
    """Draws one tree whose leaves are at the height `below`."""
    nodes = tree["nodes"]
    high, parents, leaf_parents = heights(nodes)
    red, soft, ink = colours.state["rejected"]["color"], colours.surface["soft"], colours.surface["text"]
    places = [
        ((first + last - 1) / 2, below + up) for (_, first, last, _), up in zip(nodes, high, strict=True)
    ]
    edges = [(places[p], places[at], nodes[at][3]) for at, p in enumerate(parents) if p is not None]
    edges += [(places[p], (leaf, below + 0.25), 0) for leaf, p in leaf_parents.items()]
    for flag, colour, dash in ((0, soft, "solid"), (1, red, "dash")):
        some = [(a, b) for a, b, wrong in edges if wrong == flag]
        figure.add_scatter(
            x=[x for a, b in some for x in (a[0], b[0], None)],
            y=[y for a, b in some for y in (a[1], b[1], None)],
            mode="lines",
            line={"color": colour, "width": 1.4 if flag else 1, "dash": dash},
            hoverinfo="skip",
        )
    says = [
        f"{label}: {' '.join(leaves[first:last])}{' (not in the true tree)' if wrong else ''}"
        for label, first, last, wrong in nodes
    ]
    figure.add_scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers",
        marker={"size": 14, "opacity": 0},
        hovertext=list(map(hover, says)),
        hoverinfo="text",
        name=plain(tree["label"]),
    )
    for (label, _, _, wrong), (x, y) in zip(nodes, places, strict=True):
        figure.add_annotation(
            x=x,
            y=y,
            text=f"✕ {plain(label)}" if wrong else plain(label),
            showarrow=False,
            bgcolor=colours.surface["bg"],
            borderpad=1,
            font={"size": 11, "color": red if wrong else ink},
        )
    for at, leaf in enumerate(leaves):
        text = leaf if len(leaf) <= LETTERS else leaf[: LETTERS - 1] + "…"
        figure.add_annotation(
            x=at, y=below, text=plain(text), showarrow=False, font={"size": 11, "family": MONO, "color": ink}
        )
    figure.add_annotation(
        x=-0.5,
        y=below + levels - 0.7,
        xanchor="left",
        text=f"<b>{plain(tree['label'])}</b>",
        showarrow=False,
        font={"size": 12, "color": soft},
    )


def bars(picture: dict, answer: dict, colours: Theme) -> go.Figure:
    """Bars of each x position side by side, distinguished by grey and pattern."""
    names, places = picture["names"], picture["places"]
    lines = [
        f"{name}: " + ", ".join(f"{value_text(v)} {at}" for v, at in zip(row, places, strict=True))
        for name, row in zip(names, picture["values"], strict=True)
    ]
    figure = framed(
        colours,
        picture["title"],
        f"{picture['title']}: {picture['y']} by {picture['x']}. {'; '.join(lines)}.",
        260 + ROW * len(names),
        xaxis={"type": "category", "automargin": True, "fixedrange": True},
        yaxis={"title": {"text": plain(picture["y"])}, "rangemode": "tozero", "fixedrange": True},
        showlegend=True,
        barmode="group",
        bargap=0.3,
    )
    figure.update_layout(margin={"b": 52 + ROW * len(names)})
    ink, patterns = colours.surface["text"], ("", "/", ".", "x")
    fills = (colours.amounts[4], colours.surface["bg"], colours.amounts[1], colours.surface["bg"])
    for at, (name, row) in enumerate(zip(names, picture["values"], strict=True)):
        figure.add_bar(
            x=[plain(place) for place in places],
            y=row,
            name=plain(name),
            marker={
                "color": fills[at % len(fills)],
                "line": {"color": ink, "width": 1},
                "pattern": {"shape": patterns[at % len(patterns)], "fgcolor": ink, "size": 5},
            },
            hovertemplate=f"{plain(name)}, %{{x}}: %{{y:.3f}}<extra></extra>",
        )
    return figure
