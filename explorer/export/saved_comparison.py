"""The comparison of lanes in a saved page: its HTML, every chart in both looks, and sort orders of the costs.

assets/web/replay/comparison.js draws the charts and sorts the costs.
"""

import json
from itertools import product

from explorer.export.bars import choice
from explorer.export.comparison import LIKELIHOODS, ROWS, by_token, likelihood_chart, table, texts
from explorer.markup import Html, h, joined

COST_CHARTS = ("tokens", "likelihood")  # the charts with a cost on one axis


def comparison(compared: dict) -> dict:
    """Everything that a saved page shows of a comparison, as JSON.

    html      texts, choices, an element for each chart, and the costs
    charts    look -> name of a chart -> figure; a chart with a cost on one axis is called `tokens charge` or
              `likelihood charge likelihood`
    orders    for each column of the costs, the order of its rows by ascending and by descending value
    """
    from visualizers.figures import comparison as drawn  # on demand: plotly is slow to import

    made = {}
    for look in ("light", "dark"):
        figures = by_token(compared, look)
        for charge in compared["charges"]:
            figures[f"tokens {charge}"] = drawn.tokens_reached(compared, charge, look)
        for charge, likelihood in product(compared["charges"], LIKELIHOODS):
            figures[f"likelihood {charge} {likelihood}"] = likelihood_chart(
                compared, charge, likelihood, look
            )
        made[look] = {name: json.loads(figure.to_json()) for name, figure in figures.items()}
    charts = [name for row in ROWS for name in row if name in COST_CHARTS or name in made["light"]]
    costs = table(compared)
    titles = [f"{column['title']} ({column['how']})" for column in compared["table"]["columns"]]
    named = {"class": "saved-costs", "tabindex": 0, "role": "region", "aria-label": "All costs"}
    html = [
        Html(texts(compared)),
        choices(compared["charges"]),
        h("div", "saved-charts", *map(chart_html, charts)),
        h("h3", "", "All costs"),
        h("div", named, costs_html(costs, titles)),
    ]
    columns = zip(*costs["data"], strict=True)
    return {"html": joined(html), "charts": made, "orders": [orders(column) for column in columns]}


def choices(charges: dict[str, str]) -> Html:
    """The choice of the measures of the charts."""
    rows = {"charge": ("Cost measured in", charges), "likelihood": ("Log-probability", LIKELIHOODS)}
    made = []
    for name, (label, options) in rows.items():
        radios = [(value, words, None) for value, words in options.items()]
        made.append(h("div", "field", h("span", "", label), choice(label, name, radios, next(iter(options)))))
    return h("form", {"class": "saved-choices", "method": "dialog"}, *made)  # Enter sends nothing anywhere


def chart_html(chart: str) -> Html:
    """The empty element in which a chart is drawn, with its caption."""
    return h("figure", {"data-chart": chart}, h("div"), h("figcaption"))


def costs_html(costs: dict, titles: list[str]) -> Html:
    """The costs as a table whose headers are buttons; `titles`: explanations of all columns but the first."""
    heads = []
    for name, title in zip(costs["headers"], [None, *titles], strict=True):
        press = h("button", {"type": "button", "aria-label": f"Sort by {name}"}, name)
        heads.append(h("th", {"scope": "col", "aria-sort": "none", "title": title}, press))
    rows = [
        h("tr", "", h("th", {"scope": "row"}, name), *(h("td", "", cell) for cell in cells))
        for name, *cells in costs["metadata"]["display_value"]
    ]
    return h("table", "", h("thead", "", h("tr", "", *heads)), h("tbody", "", *rows))


def orders(column: tuple) -> list[list[int]]:
    """The row order by ascending and by descending value of a column; rows without a value come last."""
    there = [at for at, value in enumerate(column) if value is not None]
    lacking = [at for at, value in enumerate(column) if value is None]
    return [sorted(there, key=column.__getitem__, reverse=down) + lacking for down in (False, True)]
