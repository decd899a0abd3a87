"""The map of decoding as a poster: a family tree with one row per method, its year and what it changed.

Takes the graph of visualizers.analysis.family_tree. Knows no strategies.
"""

import re
from dataclasses import dataclass
from html import escape

import networkx as nx

from visualizers.analysis.family_tree import caption_of, children, tops
from visualizers.figures.theme import SANS, theme

POSTER, THUMBNAIL, GUTTER = (
    (594, 420),
    24.0,
    6.0,
)  # millimetres: A2 landscape, width of a thumbnail, gap between columns
TITLE = "A map of decoding"


@dataclass(frozen=True)
class Row:
    """A method in the tree: `depth` levels below its root, `at` rows from the top of its column; `parent`:
    the row of the method that it derives from.
    """

    column: int
    at: int
    depth: int
    name: str
    parent: "Row | None" = None
    heading: bool = False


def rows(graph: nx.DiGraph, families: dict[str, str], columns: int) -> list[Row]:
    """The tree as indented rows, family by family under headings: parents before their children, older
    methods first. A column begins with a root or the child of one.
    """

    def walk(name: str, depth: int) -> list[tuple[str, int, str | None]]:
        below = [(name, depth, None)]
        for child in children(graph, name):
            below += [(child, depth + 1, name), *walk(child, depth + 1)[1:]]
        return below

    branches = []  # [(name, depth, parent)], a heading has depth -1
    for family, title in families.items():
        for number, top in enumerate(tops(graph, family)):
            branches.append([*([] if number else [(title, -1, None)]), *walk(top, 0)])
    limit = (sum(map(len, branches)) + len(families)) / columns
    placed, column, at = [], 0, 0
    for branch in branches:
        known: dict[str, Row] = {}
        for name, depth, parent in branch:
            if at >= limit and depth <= 1 and column < columns - 1:
                column, at = column + 1, 0
            at += bool(at) and depth < 0  # an empty row above a heading
            known[name] = Row(column, at, max(depth, 0), name, known.get(parent), depth < 0)
            placed.append(known[name])
            at += 1
    return placed


def poster(graph: nx.DiGraph, families: dict[str, str], thumbnails: dict[str, str] | None = None) -> str:
    """The map as an A2 SVG with three columns of rows on white; `thumbnails`: method -> an SVG of a real run,
    drawn at the right of its row.
    """
    colours, placed = theme("light"), rows(graph, families, 3)
    wide, high = POSTER
    margin, top = 16.0, 44.0
    row_height = (high - top - 14) / (max(row.at for row in placed) + 1)
    column, indent, size = (wide - 2 * margin) / 3, 6.0, min(row_height * 0.48, 4.6)
    ink, soft, line = (colours.colour(role) for role in ("ink", "soft", "line"))

    def place(row: Row) -> tuple[float, float]:
        return margin + row.column * column + row.depth * indent + 2, top + (row.at + 0.5) * row_height

    drawn = [
        f'<text x="{margin}" y="24" font-size="14" font-weight="700">{TITLE}</text>',
        f'<text x="{margin}" y="34" font-size="4.8" fill="{soft}">{escape(caption_of(graph))}</text>',
    ]
    for row in placed:
        x, y = place(row)
        if row.heading:
            heading = f'<text x="{x - 2:.1f}" y="{y + 2:.1f}" font-size="7" font-weight="700">'
            drawn.append(f"{heading}{escape(row.name)}</text>")
            continue
        if row.parent:
            near = row.parent.column == row.column  # otherwise the line starts at the top of the column
            left, above = place(row.parent) if near else (x - indent, top - row_height / 2)
            drawn.append(
                f'<path d="M{left:.1f} {above + 1.6:.1f}V{y:.1f}H{x - 1.6:.1f}" fill="none" stroke="{line}" '
                'stroke-width="0.5"/>'
            )
        if row.name in (thumbnails or {}):
            right = margin + (row.column + 1) * column - GUTTER
            drawn.append(inset(thumbnails[row.name], right, y, THUMBNAIL, row_height * 0.86))
        node = graph.nodes[row.name]
        fill = ink if node["exact"] else "#fff"
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5" fill="{fill}" stroke="{ink}" stroke-width="0.5"/>'
        )
        label = f'<tspan font-weight="700">{escape(node["title"])}</tspan> {escape(node["year"])}'
        drawn.append(f'<text x="{x + 3.5:.1f}" y="{y:.1f}" font-size="{size:.2f}">{label}</text>')
        room = margin + (row.column + 1) * column - GUTTER - THUMBNAIL - x - 5
        small = min(size * 0.82, room / 0.54 / len(node["differs"]))
        drawn.append(
            f'<text x="{x + 3.5:.1f}" y="{y + size * 0.95:.1f}" font-size="{small:.2f}" fill="{soft}">'
            f"{escape(node['differs'])}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}mm" height="{high}mm" '
        f'viewBox="0 0 {wide} {high}" font-family="{SANS}" fill="{ink}">'
        f'<rect width="{wide}" height="{high}" fill="#fff"/>{"".join(drawn)}</svg>\n'
    )


def inset(picture: str, right: float, middle: float, wide: float, high: float) -> str:
    """An SVG nested in another one, in a box whose right edge is at `right`."""
    box = re.search(r'viewBox="([^"]+)"', picture).group(1)
    inner = re.sub(r"^<svg[^>]*>|</svg>\s*$", "", picture.strip())
    face = re.search(r'font-family="([^"]*)"', picture).group(1)
    return (
        f'<svg x="{right - wide:.1f}" y="{middle - high / 2:.1f}" width="{wide:g}" height="{high:.1f}" '
        f'viewBox="{box}" font-family="{face}" preserveAspectRatio="xMaxYMid meet">{inner}</svg>'
    )
