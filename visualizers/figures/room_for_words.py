"""The width of columns and the height of rows that a figure needs for its words: in boxes, above nodes and in
labels.
"""

import math
from collections.abc import Callable
from itertools import pairwise

from visualizers.figures.boxes import SIZE as BOX_SIZE
from visualizers.figures.strokes import label_width
from visualizers.figures.trees import LINES
from visualizers.figures.trees import SIZE as NAME_SIZE
from visualizers.figures.wrapping import LINE, line_count
from visualizers.scene.marks import Op
from visualizers.scene.words import MONO, cells

ROOMY, ROOMIEST = 66, 80  # maximum pixels of columns widened for tokens, and for labels


def column_for(marks: list[Op], row_of: Callable[[Op], float]) -> float:
    """The column width in pixels at which no word is cut or overlaps, within bounds; `row_of(mark)`: pixels
    of the mark's row.
    """
    tokens = [box_width(m, row_of(m)) / m["w"] for m in marks if m["kind"] == "cell" and m.get("text")]
    tokens += [name_width(m) for m in marks if named(m)]
    labels = [m for m in marks if m["kind"] == "label" and m.get("text") and not m.get("side")]
    tokens += [math.ceil(cells(m["text"]) / 2) * MONO * m["size"] + 4 for m in labels if m.get("rises")]
    return max([0.0, *(min(ROOMY, w) for w in tokens), *(min(ROOMIEST, w) for w in apart(labels))])


def extra_row(marks: list[Op], column: float) -> float:
    """Extra pixels that a row of nodes needs if a token takes a second line."""
    return (
        LINE * NAME_SIZE * any(named(m) and cells(m["text"]) * MONO * NAME_SIZE > column - 4 for m in marks)
    )


def named(mark: Op) -> bool:
    """Whether a mark is a node with its token above it."""
    return mark["kind"] == "node" and bool(mark.get("text")) and not mark.get("quiet")


def name_width(node: Op) -> float:
    """Width in pixels of the token above a node, wrapped."""
    return math.ceil(cells(node["text"]) / LINES) * MONO * NAME_SIZE + 4


def box_width(cell: Op, row: float) -> float:
    """Width in pixels of the words in a box, wrapped to its height; 0 if the box is too low for words."""
    tall = cell.get("tall") or cell["h"] * row
    lines = line_count(tall, BOX_SIZE)
    letters = cells(cell["text"] if lines > 1 else cell["text"].removeprefix("␣"))
    wide = math.ceil(letters / lines) * MONO * BOX_SIZE + 5 + (13 if cell.get("glyph") else 0)
    return wide if tall >= BOX_SIZE else 0.0


def apart(labels: list[Op]) -> list[float]:
    """The column widths in pixels at which labels next to each other do not touch."""
    free = sorted(
        (m for m in labels if not m.get("w") and not m.get("stack")),
        key=lambda m: (m.get("panel") or "", m["y"], m.get("dy", 0), m["x"]),
    )
    return [
        (label_width(one) + label_width(other)) / 2 / (other["x"] - one["x"])
        for one, other in pairwise(free)
        if (one.get("panel"), one["y"], one.get("dy", 0))
        == (other.get("panel"), other["y"], other.get("dy", 0))
        and other["x"] - one["x"] >= 0.5
    ]
