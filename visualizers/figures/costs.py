"""The chart of one cost of several lanes, such as target forwards or tokens per second.

Reads the table in the result of `visualizers.analysis.comparison.compare`.
"""

import plotly.graph_objects as go

from decoders.refusal import Refusal
from visualizers.figures.charts import chart, hover, nothing
from visualizers.figures.theme import theme
from visualizers.figures.traces import plain


def cost(comparison: dict, name: str = "target forwards", look: str = "light") -> go.Figure:
    """One column of the cost table, a bar a lane.

    Raises Refusal with one sentence for a column that is not there or that holds lists.
    """
    table, colours = comparison["table"], theme(look)
    names = [column["name"] for column in table["columns"]]
    if name not in names:
        raise Refusal(f"There is no cost named {name!r}; choose one of {', '.join(names)}.")
    column, cells = table["columns"][names.index(name)], []
    for row in table["rows"]:
        cells.append(row["cells"][names.index(name)])
    if any(isinstance(cell["value"], list) for cell in cells):
        raise Refusal(f"{name} is a list of numbers for each lane, which bars cannot show.")
    if all(cell["value"] is None for cell in cells):
        return nothing(name, f"No lane has a number of {name}.", look)
    lanes = [f"{row['lane']} {row['label']}" for row in table["rows"]]
    lines = [f"{lane}: {cell['label']}" for lane, cell in zip(lanes, cells, strict=True)]
    made = chart(
        name[0].upper() + name[1:],
        f"{column['how']}; {column['title'][0].lower()}{column['title'][1:]}",
        f"{column['title']} {'; '.join(f'lane {one}' for one in lines)}.",
        look,
        {"words": "lane", "type": "category"},
        {"rangemode": "tozero"},
    )
    return made.add_bar(
        x=[str(row["lane"]) for row in table["rows"]],
        y=[cell["value"] for cell in cells],
        text=[plain(cell["label"]) for cell in cells],
        textposition="outside",
        cliponaxis=False,
        hovertext=[hover(one) for one in lines],
        hoverinfo="text",
        marker={"color": colours.ranks[0]},
        width=0.5,
    )
