"""The words in the cells of a grid as one SVG image on top of it. Plotly would place each word with a dozen
calls, two thirds of the drawing time of a grid of 13 rows and 64 columns.
"""

from collections.abc import Sequence
from urllib.parse import quote

import plotly.graph_objects as go

from visualizers.figures.svg import FORBIDDEN
from visualizers.figures.theme import MONO, Theme

SIZE = 11  # pixels of the letters


def set_words(
    figure: go.Figure, words: Sequence[Sequence[str]], width: int, height: int, colours: Theme
) -> None:
    """Adds `words`, without markup, to a grid whose cells are one unit of both axes, around whole numbers.

    words: rows from the bottom up; width, height: of a cell, in pixels.
    """
    rows, columns = len(words), len(words[0])
    cells = [
        f'<text x="{(at + 0.5) * width}" y="{(rows - row - 0.5) * height}">{FORBIDDEN.sub("�", word)}</text>'
        for row, line in enumerate(words)
        for at, word in enumerate(line)
    ]
    wide, high = columns * width, rows * height
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'font-family="{MONO}" font-size="{SIZE}" fill="{colours.surface["text"]}" text-anchor="middle" '
        f'dominant-baseline="central">{"".join(cells)}</svg>'
    )
    figure.add_layout_image(
        source=f"data:image/svg+xml,{quote(svg, safe=' /:=,.')}",
        xref="x",
        yref="y",
        x=-0.5,
        y=rows - 0.5,
        sizex=columns,
        sizey=rows,
        sizing="stretch",
        layer="above",
    )
