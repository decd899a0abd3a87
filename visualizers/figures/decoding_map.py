"""The map of decoding as a picture: years from left to right, families as bands, mechanisms as branches, and
for each method a card with a picture of a real run, its name and what it changed.

It is drawn in millimetres of an A2 sheet, as a poster and for the page, where cards are links and colours are
those of the theme. Takes the graph of visualizers.analysis.family_tree.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

import networkx as nx

from visualizers.analysis.family_tree import caption_of
from visualizers.figures import outlines
from visualizers.figures.theme import theme
from visualizers.graphs.branches import Band, Grid, grid

WIDE, HIGH = 420, 594  # mm of A2
TITLE = "A map of decoding"
LEFT, RIGHT, TOP, FOOT = 15.0, 6.0, 42.0, 6.0  # mm around the cells
GUTTER, ABOVE, BETWEEN = 3.0, 3.4, 0.4  # mm left of a card and above it, where lines run, and below it
POINT = 25.4 / 72  # mm
NAME, SAYS, BRANCH = 6 * POINT, 5 * POINT, 6 * POINT  # mm of letters
FAR = 2.8  # mm of a name's letters where the map is small
LEAD = 1.12  # mm from line to line, for each of their letters
CORNER = 1.2  # mm of a line's round corner
PAD, PICTURE = 0.8, 9.0  # mm around what a card holds, and that its picture is high at most


@dataclass(frozen=True)
class Inks:
    """The colours of a map, as SVG has them; `family`: one for each family."""

    ink: str
    soft: str
    line: str
    ground: str
    family: dict[str, str]


@dataclass(frozen=True)
class Medium:
    """What a map is drawn on. `write`: words from x and a baseline y on, in letters of a size, in a colour,
    bold or not; `picture`: a method's picture in a box x, y, width, height; `link`: the address of a method,
    None on paper.
    """

    inks: Inks
    write: Callable[[str, float, float, float, str, bool], str]
    picture: Callable[[str, float, float, float, float], str]
    link: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Sheet:
    """A grid on the sheet: where its cells are."""

    grid: Grid

    @property
    def column(self) -> float:
        return (WIDE - LEFT - RIGHT) / self.grid.size[0]

    @property
    def row(self) -> float:
        return (HIGH - TOP - FOOT) / self.grid.size[1]

    def gutter(self, column: int) -> float:
        """The x of the lines that run left of a column's cards."""
        return LEFT + column * self.column + GUTTER / 2

    def rail(self, row: int) -> float:
        """The y of the lines that run above a row's cards."""
        return TOP + row * self.row + ABOVE / 2

    def card(self, name: str) -> tuple[float, float, float, float]:
        """The box of a method's card: x, y, width, height."""
        column, row = self.grid.places[name]
        x, y = LEFT + column * self.column + GUTTER, TOP + row * self.row + ABOVE
        return x, y, self.column - GUTTER, self.row - ABOVE - BETWEEN


def poster(graph: nx.DiGraph, families: dict[str, str], thumbnails: dict[str, str] | None = None) -> str:
    """The map as an A2 sheet on white, words as outlines; `thumbnails`: method -> an SVG of a real run."""
    light, known = theme("light"), thumbnails or {}
    surface = light.surface
    inks = Inks(surface["text"], surface["soft"], surface["line"], surface["bg"], light.family)

    def picture(name: str, *box: float) -> str:
        return inset(known[name], *box) if name in known else ""

    on = Medium(inks, outlined, picture)
    drawn = "".join(heading(graph, on)) + decoding_map(graph, families, on)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{WIDE}mm" height="{HIGH}mm" viewBox="0 0 {WIDE} {HIGH}">{outlines.definitions([drawn])}'
        f'<rect width="{WIDE}" height="{HIGH}" fill="{inks.ground}"/>{drawn}</svg>\n'
    )


def decoding_map(graph: nx.DiGraph, families: dict[str, str], on: Medium) -> str:
    """The map without its heading. Where cards are links, a name is there twice: once for a small map."""
    placed = grid(graph, families)
    sheet = Sheet(placed)
    pieces = [*columns(sheet, on)]
    pieces += [piece for band in placed.bands for piece in band_of(sheet, band, families, on)]
    pieces += [line(sheet, graph, *edge, on.inks) for edge in widest_first(graph)]
    pieces += [label(sheet, graph, name, on) for name in beginnings(graph)]
    for name in placed.places:
        drawn = card(sheet, graph, name, on)
        pieces.append(linked(graph, name, drawn, on.link) if on.link else drawn)
    return "".join(pieces)


def viewed() -> str:
    """The `viewBox` of the map without its heading."""
    top = TOP - 10
    return f"0 {top:g} {WIDE} {HIGH - top:g}"


# ---- words -------------------------------------------------------------------------------------------------


def outlined(words: str, x: float, y: float, size: float, colour: str, bold: bool = False) -> str:
    """Words as outlines, the same on every machine."""
    marked = escape(words, quote=False)
    return outlines.words(f"<b>{marked}</b>" if bold else marked, x, y, size, colour)


def written(words: str, x: float, y: float, size: float, colour: str, bold: bool = False) -> str:
    """Words in the page's own letters, as wide as their outlines."""
    heavy = ' font-weight="700"' if bold else ""
    wide = outlines.span_width(words, bold) * size
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.2f}" fill="{colour}"{heavy} '
        f'textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs">{escape(words)}</text>'
    )


def wrapped(words: str, size: float, room: float, bold: bool = False) -> list[str]:
    """Words in lines that are no wider than the room, unless a word is; one with a hyphen can be broken."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if outlines.span_width(longer, bold) * size <= room:
            lines[-1] = longer
            continue
        start, hyphen, end = word.partition("-")
        broken = hyphen and outlines.span_width(word, bold) * size > room
        lines += [start + hyphen, end] if broken else [word]
    return [line for line in lines if line]


def below_each_other(
    lines: list[str], x: float, top: float, size: float, colour: str, bold: bool, on: Medium
) -> str:
    """Lines of words."""
    baselines = (top + size * (LEAD * at + 0.85) for at in range(len(lines)))
    return "".join(
        on.write(words, x, y, size, colour, bold) for words, y in zip(lines, baselines, strict=True)
    )


# ---- around the cards --------------------------------------------------------------------------------------


def heading(graph: nx.DiGraph, on: Medium) -> Iterator[str]:
    """The title, and what the map shows in words."""
    yield on.write(TITLE, LEFT, 17, 13, on.inks.ink, True)
    lines = wrapped(caption_of(graph), 3.6, WIDE - LEFT - RIGHT)
    yield below_each_other(lines, LEFT, 22, 3.6, on.inks.soft, False, on)


def columns(sheet: Sheet, on: Medium) -> Iterator[str]:
    """The years above their columns, and a line at the left of each."""
    for years in sheet.grid.years:
        x, room = LEFT + years.first * sheet.column, years.wide * sheet.column - 2
        yield (
            f'<path d="M{x:.1f} {TOP - 8:.1f}V{HIGH - FOOT}" stroke="{on.inks.line}" stroke-width="0.25"/>'
        )
        size = min(5.0, room / outlines.span_width(years.label, True))
        yield on.write(years.label, x + 1.6, TOP - 3.5, size, on.inks.ink, True)


def band_of(sheet: Sheet, band: Band, families: dict[str, str], on: Medium) -> Iterator[str]:
    """The ground of a family, and its name along the left edge."""
    if not band.tall:
        return
    y, high = TOP + band.row * sheet.row, band.tall * sheet.row - 0.8
    colour, title, wide = on.inks.family[band.family], families[band.family], WIDE - LEFT - RIGHT
    yield f'<rect x="{LEFT}" y="{y:.1f}" width="{wide}" height="{high:.1f}" fill="{colour}" opacity="0.07"/>'
    yield (
        f'<rect data-family="{escape(band.family)}" x="{LEFT - 9}" y="{y:.1f}" width="8" '
        f'height="{high:.1f}" rx="1.5" fill="{colour}"/>'
    )
    long = outlines.span_width(title, True)
    size = min(5.0, 0.9 * high / long)
    place = f"translate({LEFT - 5 + 0.35 * size:.1f} {y + (high + long * size) / 2:.1f}) rotate(-90)"
    yield f'<g transform="{place}">{on.write(title, 0, 0, size, on.inks.ground, True)}</g>'


def beginnings(graph: nx.DiGraph) -> Iterator[str]:
    """The methods that grew from none of their own branch."""
    for name, branch in graph.nodes(data="branch"):
        if all(graph.nodes[parent]["branch"] != branch for parent in graph.predecessors(name)):
            yield name


def label(sheet: Sheet, graph: nx.DiGraph, name: str, on: Medium) -> str:
    """The name of a branch above the card of a method with which it begins, over the lines that run there;
    "" where the card to its left says it.
    """
    (column, row), branch = sheet.grid.places[name], graph.nodes[name]["branch"]
    beside = sheet.grid.at.get((column - 1, row))
    if beside and graph.nodes[beside]["branch"] == branch:
        return ""
    x, y, wide = sheet.card(name)[0], sheet.rail(row), outlines.span_width(branch, True) * BRANCH
    ground = (
        f'<rect x="{x - 0.5:.1f}" y="{y - 1.4:.1f}" width="{wide + 1:.1f}" height="2.8" '
        f'fill="{on.inks.ground}"/>'
    )
    colour = on.inks.family[graph.nodes[name]["family"]]
    return ground + on.write(branch, x, y + 0.36 * BRANCH, BRANCH, colour, True)


# ---- lines -------------------------------------------------------------------------------------------------


def widest_first(graph: nx.DiGraph) -> list[tuple[str, str, int]]:
    """(parent, child, how many methods grew from the child, with it), so that thin lines are on top."""
    edges = [(a, b, 1 + len(nx.descendants(graph, b))) for a, b in graph.edges]
    return sorted(edges, key=lambda edge: -edge[2])


def line(sheet: Sheet, graph: nx.DiGraph, parent: str, child: str, many: int, inks: Inks) -> str:
    """From a method to one that grew from it: along gutters and rails, so that it crosses no card."""
    x, y, wide, high = sheet.card(parent)
    to_x, to_y, _, to_high = sheet.card(child)
    start, end = (x + wide, y + high / 2), (to_x, to_y + to_high / 2)
    (column, _), (to_column, to_row) = sheet.grid.places[parent], sheet.grid.places[child]
    out, into, rail = sheet.gutter(column + 1), sheet.gutter(to_column), sheet.rail(to_row)
    corners = [(out, start[1]), (out, rail), (into, rail), (into, end[1])]
    if column + 1 == to_column:
        corners = [(out, start[1]), (out, end[1])]
    colour, thick = inks.family[graph.nodes[child]["family"]], 0.35 + 0.11 * min(many, 12) ** 0.5
    return (
        f'<path class="grew" data-to="{escape(child)}" d="{rounded([start, *corners, end])}" fill="none" '
        f'stroke="{colour}" stroke-width="{thick:.2f}"/>'
    )


def rounded(points: list[tuple[float, float]]) -> str:
    """Path data of a line through points, upright and level, with round corners."""
    (x, y), (last_x, last_y) = points[0], points[-1]
    drawn = f"M{x:.1f} {y:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        (a, b), (c, d) = near(corner, before), near(corner, after)
        drawn += f"L{a:.1f} {b:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {c:.1f} {d:.1f}"
    return f"{drawn}L{last_x:.1f} {last_y:.1f}"


def near(corner: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """The point where the arc of a corner meets the line to `end`."""
    (x, y), (to_x, to_y) = corner, end
    long = abs(to_x - x) + abs(to_y - y)
    share = min(CORNER, long / 2) / long if long else 0
    return x + (to_x - x) * share, y + (to_y - y) * share


# ---- a card ------------------------------------------------------------------------------------------------


def card(sheet: Sheet, graph: nx.DiGraph, name: str, on: Medium) -> str:
    """A method: its picture, its name and year, and what it changed."""
    node, inks = graph.nodes[name], on.inks
    x, y, wide, high = sheet.card(name)
    colour, inner, left = inks.family[node["family"]], wide - 2 * PAD, x + PAD
    titles = wrapped(f"{node['title']} {node['year']}", NAME, inner, True)
    says = wrapped(node["differs"], SAYS, inner)
    words = LEAD * (NAME * len(titles) + SAYS * len(says)) + PAD / 2
    top, fill = y + high - words, colour if node["exact"] else inks.ground
    picture = on.picture(name, left, y + PAD, inner, min(PICTURE, high - words - 1.5 * PAD))
    drawn = (
        f'<rect class="ground" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="1.2" '
        f'fill="{inks.ground}" stroke="{colour}" stroke-width="0.3"/>{picture}'
        f'<circle cx="{x + wide:.1f}" cy="{y + high / 2:.1f}" r="0.9" fill="{fill}" stroke="{colour}" '
        'stroke-width="0.4"/>'
    )
    small = below_each_other(titles, left, top, NAME, inks.ink, True, on)
    small += below_each_other(says, left, top + LEAD * NAME * len(titles), SAYS, inks.soft, False, on)
    if not on.link:
        return drawn + small
    large = wrapped(node["title"], FAR, inner, True)
    foot = y + high - LEAD * FAR * len(large) - PAD / 2
    far = below_each_other(large, left, foot, FAR, inks.ink, True, on)
    return f'{drawn}<g class="near">{small}</g><g class="far">{far}</g>'


def linked(graph: nx.DiGraph, name: str, drawn: str, link: Callable[[str], str]) -> str:
    """A card as a link that says in words what it shows; the tab key reaches that of the root alone."""
    node = graph.nodes[name]
    parent = next(iter(graph.predecessors(name)), "")
    says = " ".join(part for part in (node["title"], node["year"]) if part)
    given = f'data-name="{escape(name)}" data-parent="{escape(parent)}" tabindex="{-1 if parent else 0}"'
    label = f"{escape(says)}: {escape(node['differs'])}"
    return f'<a class="method" href="{escape(link(name))}" {given} aria-label="{label}">{drawn}</a>'


def inset(picture: str, x: float, y: float, wide: float, high: float) -> str:
    """An SVG nested in another one, stretched over a box."""
    box = re.search(r'viewBox="([^"]+)"', picture).group(1)
    inner = re.sub(r"^<svg[^>]*>|</svg>\s*$", "", picture.strip())
    return (
        f'<svg x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" viewBox="{box}" '
        f'preserveAspectRatio="none">{inner}</svg>'
    )
