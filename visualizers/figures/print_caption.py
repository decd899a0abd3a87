"""The caption of a figure for print: which run it shows, what the marks mean, and what the run cost."""

from html import unescape
from itertools import takewhile
from textwrap import shorten

import plotly.graph_objects as go

from decoders.registry import strategies
from decoders.trace.costs import costs_of
from decoders.trace.number_format import many
from decoders.trace.trace import Trace
from visualizers.analysis.cost_summary import in_words
from visualizers.figures.scene_figure import Picture
from visualizers.figures.theme import theme

LARGE, SMALL = 11, 5  # pixels of dots
PROMPT = 80  # characters of the prompt
SYMBOLS = {
    "circle": "dot",
    "circle-open": "ring",
    "diamond-open": "open diamond",
    "triangle-down": "triangle",
    "x-thin": "cross",
}


def caption(trace: Trace, shown: Picture, figure: go.Figure, step: int | None) -> str:
    """The caption of a figure of this view after `step` steps (None: all), as sentences in one paragraph."""
    shown_steps = trace.steps[:step]
    all_steps = len(trace.steps)
    after = "" if len(shown_steps) == all_steps else f" after {len(shown_steps)} of {many(all_steps, 'step')}"
    said = [f"{shown.head['title']} of {trace.title}{after}. {shown.head['question']}"]
    said += [panel_sentence(m) for m in shown.marks if m["kind"] == "panel" and m.get("heading")]
    said += [] if shown.says == shown.head["question"] else [shown.says]
    legend = legend_words(figure) or glyph_words(shown)
    said += [with_dot(f"Legend: {legend}")] if legend else []
    drawn_axis = figure.layout.xaxis.visible is not False and shown.head.get("axis")
    said += [f"Horizontal axis: {drawn_axis}."] if drawn_axis else []
    said += [setup(trace), f"Costs: {in_words(costs_of(shown_steps), ', ')}."]
    return " ".join(one.strip() for one in said if one)


def with_dot(sentence: str) -> str:
    """A sentence that ends in a full stop, unless it ends in another mark."""
    return sentence if sentence.rstrip()[-1:] in ".!?…" else f"{sentence.rstrip()}."


def panel_sentence(panel: dict) -> str:
    """The sentence above a panel."""
    return with_dot(f"{panel.get('lead') or ''}{panel['heading']}".replace("\n", " "))


def legend_words(figure: go.Figure) -> str:
    """What each mark in the legend looks like and means, as in "★ in a filled box: bonus"."""
    named = [one for one in figure.data if one.showlegend and one.name]
    return "; ".join(f"{look(one)}: {unescape(one.name)}" for one in named)


def glyph_words(shown: Picture) -> str:
    """The glyphs before the tokens of a running text, as in "★: bonus"."""
    states = {m.get("state") for m in shown.marks if m["kind"] == "chip"}
    return "; ".join(f"{theme('light').state[one]['glyph']}: {one}" for one in GLYPHED if one in states)


def look(trace: go.Scatter) -> str:
    """The look of a mark in words that hold without colours."""
    if "markers" in trace.mode:
        symbol, size = trace.marker.symbol or "circle", trace.marker.size
        large = "large " if size >= LARGE else "small " if size <= SMALL else ""
        return large * (symbol == "circle") + SYMBOLS.get(symbol, symbol)
    if trace.fill != "toself":
        dash = {"dash": "dashed line", "dot": "dotted line"}.get(trace.line.dash, "line")
        return "slanted strokes" if (trace.meta or {}).get("kind") == "tick" else dash
    known = trace.meta or {}
    if known.get("kind") != "cell":
        return {"band": "tinted band", "bar": "stacked bar", "step": "grey area"}.get(
            known.get("kind"), "area"
        )
    box = {
        "filled": "filled box",
        "outline": "outlined box",
        "dashed": "dashed box",
        "dotted": "dotted box",
        "hatched": "grey box",
        "amount": "grey box",
    }.get(known.get("fill"), "pale box")
    glyph = theme("light").state.get(known.get("state"), {}).get("glyph", "")
    if (known.get("state"), known.get("fill")) == ("chosen", "filled"):
        return "black box"
    return f"{box} with {glyph}" if known.get("state") in GLYPHED else box


GLYPHED = ("bonus", "resampled", "rejected", "tolerated")  # states whose boxes have a glyph


def setup(trace: Trace) -> str:
    """Prompt, models, the strategy's own parameters, all others that are not as by default, and seed."""
    prompt = shorten(trace.text(trace.prompt), PROMPT, placeholder=" …")
    models = ", ".join(f"{role} {name}" for role, name in trace.models.items())
    known = strategies().get(trace.strategy)
    defaults = {one["name"]: one["default"] for one in known.declaration()["parameters"]} if known else {}
    own = [*takewhile(lambda name: name != "temperature", defaults), "temperature"]  # those of all come later
    settings = [
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in trace.parameters.items()
        if name in own or name in defaults and value != defaults[name]
    ]
    return f"Prompt: “{prompt}”. Models: {models}; {', '.join([*settings, f'seed {trace.seed}'])}."
