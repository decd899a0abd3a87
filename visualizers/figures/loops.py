"""Figures of loops and of reasoning: where a text would leave its loop under each processor, and how probable
the end of reasoning was. Every function raises Refusal with one sentence for an unknown look.
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from decoders.trace.number_format import many, number
from decoders.trace.repetition import Exits
from visualizers.analysis.cost_summary import share
from visualizers.analysis.loops_and_thinking import NOT_STORED, Report
from visualizers.figures.charts import chart, hover, lane_line, nothing, reader, upwards
from visualizers.figures.theme import theme
from visualizers.figures.traces import plain

ROW, ABOVE = 26, 150  # pixels of a row of the heat map, and of all around its rows
TICKS = 40  # tokens that are named below a heat map
FEWEST = 1e-4  # the least probability that is drawn


def leaving(made: Sequence[Exits], texts: Sequence[str], first: int, look: str = "light") -> go.Figure:
    """A row for each processor, a column for each token of the loop's copies: the probability to leave there.

    texts: the tokens; first: the position of the first of them in the output, from 1 on.
    """
    colours = theme(look)
    places = list(range(first, first + len(texts)))
    words = "; ".join(f"{one.title}: {share(one.mean)}" for one in made)
    figure = chart(
        "Probability of leaving the loop, token by token",
        "1 − p(the token that the loop writes), each processor alone; darker: more likely",
        f"Probability of leaving the loop at a token, on average; {words}.",
        look,
        {"words": "position of the token"},
        upwards() | {"ticklen": 0},
        height=ABOVE + ROW * len(made),
    )
    hovers = [
        [
            hover(f"{one.title}, token {place}, “{text}”: leaves with p {number(p)}")
            for place, text, p in zip(places, texts, one.leaving, strict=True)
        ]
        for one in made
    ]
    figure.add_heatmap(
        x=places,
        y=[plain(one.title) for one in made],
        z=[one.leaving for one in made],
        zmin=0,
        zmax=1,
        colorscale=_scale(colours.amounts),
        xgap=1 if len(texts) <= TICKS else 0,
        ygap=2,
        hovertext=hovers,
        hoverinfo="text",
        showscale=False,
    )
    if len(texts) <= TICKS:
        figure.update_xaxes(tickvals=places, ticktext=[plain(text) for text in texts], tickangle=-60)
    return figure


def _scale(amounts: Sequence[str]) -> list[list]:
    """All greys of the palette: no words stand on them."""
    return [[at / (len(amounts) - 1), colour] for at, colour in enumerate(amounts)]


def staying(made: Sequence[Exits], first: int, period: int, look: str = "light") -> go.Figure:
    """The probability that a text is still in its loop, token by token, for each processor."""
    drawn = [(one, [p if p >= FEWEST else None for p in one.staying]) for one in made]
    longest = max((sum(p is not None for p in values) for _, values in drawn), default=0)
    shown = max(1, min(max(longest, 1), len(made[0].leaving))) if made else 0
    places = list(range(first, first + shown))
    words = "; ".join(f"{one.title}: {number(one.staying[period - 1])}" for one in made)
    figure = chart(
        "Still in the loop",
        f"by token, sampled; not drawn below {FEWEST:g}",
        f"Probability of still being in the loop after its first copy of {period} tokens; {words}.",
        look,
        {"words": "position of the token"},
        {"words": "probability", "type": "log", "exponentformat": "power", "dtick": 1},
        len(made),
    )
    for index, (one, values) in enumerate(drawn):
        figure.add_trace(lane_line("", one.title, index, places, values[:shown], theme(look)))
    sentences = [
        f"After token {place}: " + "; ".join(f"{one.title} {number(one.staying[at])}" for one in made) + "."
        for at, place in enumerate(places)
    ]
    return reader(figure, places, sentences)


def end_of_thinking(report: Report, look: str = "light") -> go.Figure:
    """The probability that reasoning ends, at every token of it; forced ends are marked."""
    title = "p(end of thinking)"
    known = {place: p for place, p in report.ends.items() if p is not None}
    if not known:
        said = "The end of thinking is " + NOT_STORED + "." if report.ends else "This text has no reasoning."
        return nothing(title, said, look)
    places = sorted(report.ends)
    colours = theme(look)
    highest = max(known, key=lambda place: known[place])
    missing = len(places) - len(known)
    figure = chart(
        title,
        "before each token of reasoning, under the target, before processors",
        f"p(end of thinking) is highest before token {highest + 1}, {number(known[highest])}."
        + (f" At {many(missing, 'place')} it is {NOT_STORED}." if missing else ""),
        look,
        {"words": "position of the token"},
        {"words": "probability", "rangemode": "tozero", "exponentformat": "none"},
    )
    line = lane_line("", title, 0, [at + 1 for at in places], [report.ends[at] for at in places], colours)
    figure.add_trace(line)
    if report.forced:
        figure.add_vline(
            report.forced[0] + 1,
            line={"color": colours.colour("reasoning"), "width": 2, "dash": "dash"},
            annotation={"text": "forced", "font": {"size": 11}},
        )
    said = [
        f"Before token {at + 1}, “{report.texts[at]}”: "
        + (NOT_STORED if report.ends[at] is None else f"p {number(report.ends[at])}")
        for at in places
    ]
    return reader(figure, [at + 1 for at in places], said)
