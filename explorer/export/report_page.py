"""A report as one HTML file that works offline: its content, and Plotly figures in light and dark.

`content` has a place `figure-NAME` for each figure.
"""

import json
from collections.abc import Callable, Mapping

import plotly.graph_objects as go

from explorer.export import page_files, palette
from explorer.export.replay_page import hashed
from explorer.markup import Html, h

STYLE = page_files.ASSETS / "web" / "report"


def report_html(title: str, content: Html, figures: Mapping[str, Callable[[str], go.Figure]]) -> str:
    """The whole page. figures: name -> the figure in a look, "light" or "dark"."""
    from plotly.offline import get_plotlyjs  # slow to import, and only a page needs it

    made = {
        look: {name: json.loads(draw(look).to_json()) for name, draw in figures.items()}
        for look in ("light", "dark")
    }
    drawn = f"const FIGURES={page_files.json_in_html(made)};"
    scripts = [page_files.THEME, get_plotlyjs(), drawn, (STYLE / "report.js").read_text("utf-8")]
    hashes = " ".join(map(hashed, scripts))
    policy = (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    styles = palette.css() + (STYLE / "report.css").read_text("utf-8")
    head = [
        Html("<meta charset='utf-8'>"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html("<meta name='viewport' content='width=device-width, initial-scale=1'>"),
        h("title", "", title),
        Html(f"<style>{styles}</style><script>{scripts[0]}</script>"),
    ]
    after = [Html(f"<script>{text}</script>") for text in scripts[1:]]
    page = h("html", {"lang": "en"}, h("head", "", *head), h("body", "", content, *after))
    return f"<!doctype html>\n{page}\n"


def figure_place(name: str) -> Html:
    """Where a figure is drawn."""
    return h("figure", "", h("div", {"id": f"figure-{name}", "class": "chart"}))


def header(words: list[str]) -> Html:
    """The first row of a table."""
    return h("tr", "", *(h("th", "", one) for one in words))
