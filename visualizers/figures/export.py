"""A figure as a file: a self-contained HTML page, or an image."""

import importlib.util
from pathlib import Path

import plotly.graph_objects as go

from decoders import files
from decoders.refusal import Refusal

PAGES, PICTURES = (".html", ".htm"), (".png", ".svg", ".pdf", ".webp")


def page(figure: go.Figure) -> str:
    """A self-contained HTML page, about 5 MB."""
    return figure.to_html(include_plotlyjs=True, config={"displaylogo": False})


def save(figure: go.Figure, path: str | Path) -> None:
    """Writes a figure in the format that the name's ending says.

    Raises Refusal with one sentence for another ending, or a picture if kaleido or its browser is missing.
    """
    path = Path(path)
    if path.suffix in PAGES:
        files.write(path, page(figure))
        return
    if path.suffix not in PICTURES:
        endings = ", ".join([PAGES[0], *PICTURES])
        raise Refusal(f"A figure is saved as {endings}; {path.name} ends in none of them.")
    if importlib.util.find_spec("kaleido") is None:
        raise Refusal(
            "Pictures of figures need kaleido: pip install -r requirements-kaleido.txt, or save as .html."
        )
    try:
        picture = figure.to_image(path.suffix[1:])
    except RuntimeError as error:  # Plotly's error if kaleido finds no browser
        raise Refusal(
            "Kaleido draws with Chrome or Chromium and found none: name it in BROWSER_PATH, or save as .html."
        ) from error
    files.write(path, picture)
