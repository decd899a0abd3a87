"""Marks of a scene as Plotly traces: which kind of mark is drawn by which function, and in which order."""

from visualizers.figures.boxes import areas, bands, bars, cells
from visualizers.figures.strokes import arcs, guides, hooks, labels, paths, stems, symbols
from visualizers.figures.theme import Theme
from visualizers.figures.traces import Room
from visualizers.figures.trees import edges, nodes, ticks
from visualizers.scene.marks import Op

DRAWERS = {  # in the order in which they are drawn
    "band": bands,
    "step": areas,
    "bar": bars,
    "stem": stems,
    "guide": guides,
    "cell": cells,
    "arc": arcs,
    "hook": hooks,
    "path": paths,
    "edge": edges,
    "tick": ticks,
    "node": nodes,
    "symbol": symbols,
    "label": labels,
}


def traces(kind: str, marks: list[Op], room: Room, theme: Theme) -> list[dict]:
    """The Plotly traces of one kind of marks in one panel; none for kinds that are text around the panel."""
    draw = DRAWERS.get(kind)
    return list(draw(marks, room, theme)) if draw else []
