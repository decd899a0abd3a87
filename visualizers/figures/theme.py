"""The palette as Plotly templates, one for light and one for dark."""

import functools
import json
from dataclasses import dataclass

import plotly.graph_objects as go

from decoders.packages import assets
from decoders.refusal import Refusal

PALETTE = assets() / "palette.json"
THEMES = ("light", "dark")
UNUSED = ("select2d", "lasso2d", "autoScale2d")  # buttons that have no use here
SHARE = "sendChartToCloud"  # a button that would upload the chart; no data may leave this machine
SANS, MONO = "system-ui, sans-serif", "ui-monospace, monospace"


@dataclass(frozen=True)
class Theme:
    """The palette of one theme. `state[name]` has `color`, `tint`, `dash`, `width` and `glyph`; `part[name]`,
    of spans of a text, `color` and `tint`; `surface` the grounds and inks; `amounts` greys from pale to dark;
    `ranks` greys of stacked bars, the darkest first; `family` the colours of the families of methods; `marks`
    and `dashes` tell lanes apart, in the order of the lanes.
    """

    name: str
    state: dict[str, dict]
    part: dict[str, dict]
    surface: dict[str, str]
    amounts: list[str]
    ranks: list[str]
    link: str
    family: dict[str, str]
    marks: list[str]
    dashes: list[str]

    def colour(self, role: str | None) -> str:
        """The colour of a role: ink, soft, line, link, amber, a state or a part of a text."""
        known = {
            "ink": self.surface["text"],
            "soft": self.surface["soft"],
            "line": self.surface["line"],
            "link": self.link,
            "amber": self.state["live"]["color"],
        }
        named = self.state | self.part
        return known.get(role) or named.get(role, {}).get("color", self.surface["text"])


@functools.cache
def theme(name: str) -> Theme:
    """The theme "light" or "dark". Refusal with one sentence for another name."""
    if name not in THEMES:
        raise Refusal(f"There is no theme {name!r}; choose one of {', '.join(THEMES)}.")
    palette = json.loads(PALETTE.read_text("utf-8"))
    state = {
        one: {
            **known[name],
            "dash": known["edge"]["dash"],
            "width": _number(known["edge"]["width"]),
            "glyph": known["glyph"],
        }
        for one, known in palette["state"].items()
    }
    amount, lane = palette["amount"], palette["lane"]
    return Theme(
        name,
        state,
        {one: known[name] for one, known in palette["part"].items()},
        palette["surface"][name],
        amount[name],
        amount["ranks"][name],
        palette["link"][name],
        {family: known[name] for family, known in palette["family"].items()},
        lane["marks"],
        lane["dashes"],
    )


def _number(width: float | str) -> float:
    return width if isinstance(width, int | float) else float(width.split()[0])


@functools.cache
def template(name: str) -> go.layout.Template:
    """What all figures of a theme share: colours of backgrounds, text, grids, hover cards and lanes."""
    surface = theme(name).surface
    axis = {
        "gridcolor": surface["grid"],
        "linecolor": surface["line"],
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": 11, "color": surface["soft"]},
        "title": {"font": {"size": 12}},
    }
    hair = {  # where an axis shows spikes; set here, since each setting of a figure that exists takes time
        "spikemode": "across",
        "spikesnap": "hovered data",
        "spikethickness": 1,
        "spikedash": "solid",
        "spikecolor": surface["soft"],
    }
    layout = go.Layout(
        paper_bgcolor=surface["bg"],
        plot_bgcolor=surface["bg"],
        font={"family": SANS, "size": 12, "color": surface["text"]},
        xaxis=axis | hair,
        yaxis=axis,
        hoverlabel={
            "bgcolor": surface["panel"],
            "bordercolor": surface["line"],
            "font": {"color": surface["text"], "family": MONO, "size": 12},
            "align": "left",
        },
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 11}},
        hovermode="closest",
        dragmode="pan",
        modebar={
            "bgcolor": surface["bg"],
            "color": surface["soft"],
            "activecolor": surface["text"],
            "remove": [*UNUSED, SHARE],
        },
    )
    return go.layout.Template(layout=layout)
