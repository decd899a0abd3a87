"""Charts of lanes on another machine by the roofline model; all numbers are derived.

Takes the results of `visualizers.analysis.roofline.other_machine`, each with the lane's name as `lane`, and
the figures of a device and of models.
"""

import math

import plotly.graph_objects as go

from decoders.refusal import Refusal
from visualizers.analysis.roofline import Device, Size, checked, forward_work, ridge, sentence
from visualizers.figures.charts import (
    chart,
    counted,
    ends,
    hover,
    lane_line,
    nothing,
    reader,
    significant,
)
from visualizers.figures.theme import theme

NONE = "There is no lane yet."
MIN_RANGE = 4096  # minimum number of tokens in a forward at which the roofline chart ends


def tokens_by_time(answer: dict, labels: dict[int, str] | None = None, look: str = "light") -> go.Figure:
    """Tokens of each lane by the time that its forwards would take there; steeper is faster.

    answer: {sentence, lanes}; labels: what each lane does, by its number. Raises Refusal with one sentence
    for an unknown look; so does the next.
    """
    lanes, colours, title = list(filter(timed, answer["lanes"])), theme(look), "Tokens over time"
    if not lanes:
        return nothing(title, why_nothing(answer["lanes"]), look)
    brief = max(lane["seconds"] for lane in lanes) < 1
    unit, short, scale = ("milliseconds", "ms", 1e3) if brief else ("seconds", "s", 1.0)

    def at(place: float) -> str:
        had = [f"lane {lane['lane']} {counted(tokens_at(lane['race'], place), 'token')}" for lane in lanes]
        return f"At {significant(place * scale)} {short}: {', '.join(had)}."

    places = sorted({seconds for lane in lanes for seconds, _ in lane["race"]})
    made = chart(
        title,
        f"by {unit}, derived; steeper is faster",
        " ".join([answer["sentence"], *(lane_text(lane) for lane in answer["lanes"])]),
        look,
        {"words": unit, "rangemode": "tozero"},
        {"words": "tokens", "rangemode": "tozero"},
        len(lanes),
    )
    lines = [
        lane_line(
            lane["lane"],
            (labels or {}).get(lane["lane"], ""),
            lane["lane"] - 1,
            [seconds * scale for seconds, _ in lane["race"]],
            [tokens for _, tokens in lane["race"]],
            colours,
            line={"shape": "hv"},
        )
        for lane in lanes
    ]
    ends(made, lines, colours)
    return reader(made, [place * scale for place in places], [at(place) for place in places])


def tokens_at(race: list[list[float]], seconds: float) -> int:
    """The number of tokens of a lane after this many seconds."""
    return [tokens for taken, tokens in race if taken <= seconds + 1e-12][-1]


def against_plain(answer: dict, look: str = "light") -> go.Figure:
    """Each lane compared with plain decoding, one target forward per token: its speed and its energy."""
    lanes, colours = list(filter(timed, answer["lanes"])), theme(look)
    title = "Compared with plain decoding"
    if not lanes:
        return nothing(title, why_nothing(answer["lanes"]), look)
    made = chart(
        title,
        "right of 1: faster, or more energy; plain: one target forward per token, derived",
        " ".join(lane_text(lane) for lane in answer["lanes"]),
        look,
        {"words": "× plain decoding", "rangemode": "tozero"},
        {"words": "lane", "autorange": "reversed", "type": "category"},
        2,
    )
    names = [str(lane["lane"]) for lane in lanes]
    ratios = {
        "speed": [lane["plain"]["seconds"] / lane["seconds"] for lane in lanes],
        "energy": [ratio(lane["joules"], lane["plain"]["joules"]) for lane in lanes],
    }
    for (name, values), colour in zip(ratios.items(), (colours.ranks[0], colours.ranks[2]), strict=True):
        made.add_bar(
            x=values,
            y=names,
            orientation="h",
            name=name,
            marker={"color": colour},
            hoverinfo="text",
            hovertext=[hover(lane_text(lane)) for lane in lanes],
            textposition="outside",
            cliponaxis=False,
            text=["" if value is None else f"{significant(value)} ×" for value in values],
        )
    made.add_vline(1, line={"color": colours.surface["soft"], "width": 1}, layer="below")
    high = max(value for values in ratios.values() for value in values if value is not None)
    return made.update_layout(barmode="group").update_xaxes(range=[0, 1.25 * max(1, high)])


def timed(lane: dict) -> bool:
    """Whether a lane has tokens and forwards that wrote them: traces from elsewhere may record none."""
    return lane["tokens"] > 0 and lane["seconds"] > 0


def why_nothing(lanes: list[dict]) -> str:
    """Why there is nothing to draw of lanes that are all not `timed`."""
    return " ".join(lane_text(lane) for lane in lanes) or NONE


def lane_text(lane: dict) -> str:
    """A lane's time and energy on that machine, in a sentence."""
    if not lane["tokens"]:
        return f"Lane {lane['lane']} has no token yet."
    if not lane["seconds"]:
        return f"Lane {lane['lane']} records no forward, so its time there is not known."
    energy = ratio(lane["joules"], lane["plain"]["joules"])
    than = "" if energy is None else f", {significant(energy)} × the energy"
    return (
        f"Lane {lane['lane']}: {significant(1e3 * lane['seconds'] / lane['tokens'])} ms and "
        f"{significant(1e3 * lane['joules'] / lane['tokens'])} mJ per token; "
        f"{significant(lane['plain']['seconds'] / lane['seconds'])} × as fast as plain decoding{than}; "
        f"{lane['waited']:.0%} of the time it waits for memory."
    )


def ratio(a: float, b: float) -> float | None:
    """a / b; None where b is 0."""
    return a / b if b else None


def roofline(device: Device, sizes: dict[str, Size], look: str = "light") -> go.Figure:
    """How long one forward takes there by the tokens that it takes in, of each model, the cache left aside.

    sizes: name of a model -> its size. Flat as long as memory is what it waits for, then rising: up to the
    bend drafted tokens are verified at no cost in time. Raises Refusal with one sentence for figures that
    cannot be computed with, no model, or an unknown look.
    """
    if not sizes:
        raise Refusal("Name at least one model.")
    checked(device)
    bends = {name: ridge(device, checked(size)) for name, size in sizes.items()}
    widest = max(MIN_RANGE, 8 * max(bends.values()))
    places = sorted(
        {2**power for power in range(math.ceil(math.log2(widest)) + 1)}
        | {bend for bend in bends.values() if bend >= 1}
    )

    def milliseconds(name: str, tokens: float) -> float:
        return 1e3 * forward_work(device, sizes[name], tokens, 0).seconds

    def at(tokens: float) -> str:
        took = [f"{name} {significant(milliseconds(name, tokens))} ms" for name in sizes]
        return f"A forward of {counted(round(tokens), 'token')}: {', '.join(took)}."

    lines = [
        f"The {name} becomes compute-bound at {counted(round(bend), 'token')}."
        for name, bend in bends.items()
    ]
    log = {"type": "log", "dtick": 1}
    made = chart(
        "One forward on that machine",
        "by tokens in it, derived; flat: memory-bound, rising: compute-bound",
        " ".join([sentence(device, next(iter(sizes.values()))), *lines]),
        look,
        {"words": "tokens in one forward", **log},
        {"words": "ms", **log},
        len(sizes),
    )
    for index, (name, bend) in enumerate(bends.items()):
        line = lane_line("", name, index, places, [milliseconds(name, one) for one in places], theme(look))
        made.add_trace(line.update(mode="lines"))
        if bend >= 1:
            mark = lane_line("", f"{name}: bend", index, [bend], [milliseconds(name, bend)], theme(look))
            made.add_trace(mark.update(mode="markers", marker={"size": 9}, showlegend=False))
    return reader(made, places, [at(place) for place in places])
