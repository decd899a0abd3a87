"""An examination as a page: the verdict with its evidence, the figures, and the table of texts."""

from functools import partial

from explorer.doctor.examining import Examination
from explorer.doctor.words import (
    COUNT_HEADERS,
    HEADERS,
    canary_rows,
    count_rows,
    quoted,
    said,
    sentences,
)
from explorer.export.report_page import figure_place, header, report_html
from explorer.markup import Html, h


def report_page(found: Examination, command: str) -> str:
    """The whole page. `command`: the command line that reproduces it."""
    from visualizers.figures import doctor as charts  # with Plotly, which only a page needs

    figures = {}
    if found.texts:
        figures["by_text"] = partial(charts.by_text, found.texts)
        figures["along_long"] = partial(charts.along_long, found.texts)
    if found.surface is not None:
        figures["speeds"] = partial(charts.speeds, found.surface)
    return report_html(title_of(found), body(found, command, list(figures)), figures)


def title_of(found: Examination) -> str:
    """The page's title."""
    return f"Draft doctor: {found.draft} for {found.target}"


def body(found: Examination, command: str, figures: list[str]) -> Html:
    """The content of the page."""
    first, *rest = sentences(found)
    parts = [h("h1", "", title_of(found)), h("p", "", h("b", "", first))]
    parts += [h("p", "", one) for one in rest]
    parts += [h("pre", "", command), h("div", "figures", *map(figure_place, figures))]
    evidence = [(said(one, found), quoted(one, found)) for one in found.findings]
    if any(lines for _, lines in evidence):
        parts.append(h("h2", "", "Evidence"))
        for sentence, lines in evidence:
            if lines:
                parts += [h("p", "", sentence), h("ul", "", *(h("li", "", line) for line in lines))]
    for title, headers, rows in (
        ("Texts", HEADERS, canary_rows(found)),
        ("Counts", COUNT_HEADERS, count_rows(found)),
    ):
        if rows:
            cells = [h("tr", "", *(h("td", "", cell) for cell in row)) for row in rows]
            table = h("table", "", header(list(headers)), *cells)
            parts += [h("h2", "", title), h("div", "wide", table)]
    return h("main", "", *parts)
