"""Words as outlines, so that a picture looks the same on every machine: each glyph is a path, and each word a
row of them. The outlines are those of DejaVu Sans Condensed (assets/fonts).

A text with a character that the outlines lack stays a text element, held to its width by `textLength`.
"""

import functools
import json
import re
from collections.abc import Iterable
from html import escape, unescape

from decoders.packages import assets
from visualizers.figures.svg import FORBIDDEN
from visualizers.figures.wrapping import LINE
from visualizers.scene.words import MONO, cells

OUTLINES = assets() / "fonts" / "dejavu-sans-condensed.json"
UNIT = 2048  # units of an outline in the size of its type
FACES = {False: "sans", True: "bold"}
USED = re.compile(r'href="#([sb])([0-9a-f]+)"')
Span = tuple[str, bool]  # a text and whether it is bold


@functools.cache
def glyphs() -> dict[str, dict[str, tuple[int, str]]]:
    """Face ("sans" or "bold") -> character -> its advance and its outline, y upwards."""
    return json.loads(OUTLINES.read_text("utf-8"))


def spans(marked: str) -> list[list[Span]]:
    """The lines of a text with the tags <b> and <br> that Plotly knows, as spans without tags."""
    lines = []
    for line in marked.split("<br>"):
        parts = re.split(r"<b>(.*?)</b>", line)  # every other one is bold
        lines.append([(plain(part), bool(i % 2)) for i, part in enumerate(parts) if part])
    return lines


def plain(marked: str) -> str:
    """A text without tags, and without characters that XML forbids."""
    return FORBIDDEN.sub("", unescape(re.sub(r"</?(?:b|br|span)\b[^<>]*>", "", marked)))


def width(line: list[Span], size: float) -> float:
    """The width of a line at this size."""
    return sum(span_width(text, bold) for text, bold in line) * size


@functools.lru_cache(maxsize=4096)
def span_width(text: str, bold: bool) -> float:
    """The width of a text relative to its size; estimated if it has characters without an outline."""
    known = glyphs()[FACES[bold]]
    if any(letter not in known for letter in text):
        return cells(text) * MONO
    return sum(known[letter][0] for letter in text) / UNIT


def widest(marked: str, size: float) -> float:
    """The width of the longest line of a text."""
    return max(width(line, size) for line in spans(marked))


def words(
    marked: str, x: float, y: float, size: float, colour: str, anchor: str = "left", narrow: float = 1
) -> str:
    """A text as SVG groups, one a line. `y`: the first line's baseline; `narrow`: factor of its width."""
    drawn = []
    for number, line in enumerate(spans(marked)):
        wide = width(line, size) * narrow
        left = x - wide * {"left": 0, "right": 1}.get(anchor, 0.5)
        drawn.append(one_line(line, left, y + number * LINE * size, size, colour, narrow))
    return "".join(drawn)


def one_line(line: list[Span], left: float, y: float, size: float, colour: str, narrow: float) -> str:
    """A line of words from `left` on."""
    whole = "".join(text for text, _ in line)
    if not whole.strip():
        return ""
    if any(letter not in glyphs()[FACES[bold]] for text, bold in line for letter in text):
        held = f'textLength="{width(line, size) * narrow:.1f}" lengthAdjust="spacingAndGlyphs"'
        return (
            f'<text x="{left:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" {held} '
            f'font-family="DejaVu Sans Condensed, sans-serif">{escape(whole)}</text>'
        )
    at, pieces = 0, []
    for text, bold in line:
        for letter in text:
            advance, outline = glyphs()[FACES[bold]][letter]
            if outline:
                place = f' x="{at}"' if at else ""
                pieces.append(f'<use xlink:href="#{FACES[bold][0]}{ord(letter):x}"{place}/>')
            at += advance
    scale = size / UNIT
    return (
        f'<g class="words" role="img" aria-label="{escape(whole)}" fill="{colour}" '
        f'transform="translate({left:.1f} {y:.1f}) scale({scale * narrow:.6f} {-scale:.6f})">'
        f"{''.join(pieces)}</g>"
    )


def definitions(drawn: Iterable[str]) -> str:
    """The outlines that the words among these pieces use."""
    found = sorted({use for piece in drawn for use in USED.findall(piece)})
    faces = {name[0]: known for name, known in glyphs().items()}
    paths = (f'<path id="{face}{code}" d="{faces[face][chr(int(code, 16))][1]}"/>' for face, code in found)
    return f"<defs>{''.join(paths)}</defs>"
