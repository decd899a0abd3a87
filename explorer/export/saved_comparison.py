"""The comparison of lanes in a saved page: its HTML, every chart in both looks, and the orders of its costs.

assets/web/replay/comparison.js draws the charts and sorts the costs. Knows what
`visualizers.analysis.comparison.compare` gives, no run.
"""

import json
from itertools import product

from explorer.export.bars import choice, labelled
from explorer.export.comparison import LIKELIHOODS, ROWS, by_token, likely, table, texts
from explorer.markup import Html, h, joined

COUNTED = ("tokens", "likelihood")  # the charts that count a cost


def whole(compared: dict) -> dict:
    """All that a saved page shows of a comparison, as JSON.

    html      texts, choices, a place for each chart, and the costs
    charts    look -> name of a chart -> figure; of a chart that counts a cost the name is `tokens charge` or
              `likelihood charge likelihood`
    orders    for each column of the costs the rows, those with the least value first, and those with the
              greatest first
    """
    from visualizers.figures import comparison  # only when one is looked at: plotly takes its time

    made = {}
    for look in ("light", "dark"):
        figures = by_token(compared, look)
        for charge in compared["charges"]:
            figures[f"tokens {charge}"] = comparison.tokens_reached(compared, charge, look)
        for charge, likelihood in product(compared["charges"], LIKELIHOODS):
            figures[f"likelihood {charge} {likelihood}"] = likely(compared, charge, likelihood, look)
        made[look] = {name: json.loads(figure.to_json()) for name, figure in figures.items()}
    charts = [name for row in ROWS for name in row if name in COUNTED or name in made["light"]]
    costs = table(compared)
    titles = [f"{column['title']} ({column['how']})" for column in compared["table"]["columns"]]
    named = {"class": "saved-costs", "tabindex": 0, "role": "region", "aria-label": "All costs"}
    html = [
        Html(texts(compared)),
        choices(compared["charges"]),
        h("div", "saved-charts", *map(place, charts)),
        h("h3", "", "All costs"),
        h("div", named, costs_html(costs, titles)),
    ]
    columns = zip(*costs["data"], strict=True)
    return {"html": joined(html), "charts": made, "orders": [orders(column) for column in columns]}


def choices(charges: dict[str, str]) -> Html:
    """What the charts count in, as buttons."""
    rows = {"charge": ("Cost measured in", charges), "likelihood": ("Log-probability", LIKELIHOODS)}
    made = []
    for name, (label, options) in rows.items():
        buttons = [(value, words, None) for value, words in options.items()]
        made.append(labelled(label, choice(label, name, buttons, next(iter(options)))))
    return h("div", "saved-choices", *made)


def place(chart: str) -> Html:
    """Where a chart is drawn, and its caption."""
    return h("figure", {"data-chart": chart}, h("div"), h("figcaption"))


def costs_html(costs: dict, titles: list[str]) -> Html:
    """The costs as a table whose heads are buttons; `titles`: what the columns after the names mean."""
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
    """The places of a column's values, ascending and descending; what has no value is last either way."""
    there = [at for at, value in enumerate(column) if value is not None]
    lacking = [at for at, value in enumerate(column) if value is None]
    return [sorted(there, key=column.__getitem__, reverse=down) + lacking for down in (False, True)]
