"""Plotly figures in a page of the site: assets/web/site/figures.js draws them near the screen."""

import json
from typing import Any

from explorer.export.run_file import pack
from explorer.markup import Html, h
from explorer.site.pages import SMALLEST


def figures_html(figures: list[Any]) -> Html:
    """An element for each figure, with its caption below."""
    from visualizers.figures.charts import caption  # on demand: plotly is slow to import

    made = []
    for number, figure in enumerate(figures):
        wide = figure.layout.width is not None or len(figure.data) > 40
        look = {
            "class": "site-figure wide" if wide else "site-figure",
            "data-figure": number,
            "tabindex": 0 if wide else None,
        }
        height = f"min-height: {figure.layout.height or 340}px"
        made.append(
            h("figure", look, h("div", {"style": height}), h("figcaption", "caption", caption(figure)))
        )
    return h("div", "site-figures", *made)


def carried_figures(drawn: dict[str, list[Any]]) -> dict[str, bytes]:
    """What a page carries of its figures, in both looks; nothing where it has none."""
    if not drawn["light"]:
        return {}
    figures = {look: [json.loads(one.to_json()) for one in each] for look, each in drawn.items()}
    return {"figures": pack(figures, level=SMALLEST)}
