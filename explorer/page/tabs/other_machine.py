"""Microscope, *On another machine*: how long the lanes' forward passes would take on a described device."""

import math
from collections.abc import Callable
from dataclasses import asdict, fields

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.tabs import UNTRACKED
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import READING, Screen, screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.roofline import (
    DEVICES,
    DRAFT,
    TARGET,
    WORDS,
    Device,
    Size,
    checked,
    other_machine,
    sentence,
)

ABOUT = (
    "Derived, not measured: the forward passes of the lanes in Decode, as if target and draft had the sizes "
    "below, on a device with these figures. A forward pass takes as long as the slower of two things: "
    "reading weights and cache, or two operations per parameter and token. The figures of each class of "
    "machine are round numbers to start from; change any of them."
)
NONE = "Press Run in Decode: there is no lane yet."
HEADERS = ["Lane", "ms per token", "× plain", "mJ per token", "× energy", "Waits for memory"]
PLAIN = (
    "Plain: one target forward per token. × plain: how many times as fast. × energy: energy relative to "
    "plain decoding; below 1 saves energy."
)
DASH = "—"
FIRST = next(iter(DEVICES))  # the device that is shown first
FIGURES = [field.name for field in fields(Device) if field.name in WORDS]
SIZES = [field.name for field in fields(Size)]


def build(on_screen: gr.HTML, look: gr.HTML, runs: Runs) -> Callable:
    """Declares the section. The returned function takes a listener, such as `field.change`, and makes the
    section redraw after it.
    """
    gr.Markdown(f"## On another machine\n{ABOUT}", elem_id="another-machine")
    with gr.Row():
        device = gr.Dropdown(list(DEVICES), value=FIRST, label="Class of machine", min_width=190)
        of_device = [number("Device", name, getattr(DEVICES[FIRST], name)) for name in FIGURES]
    with gr.Row():
        of_target = [number("Target", name, getattr(TARGET, name)) for name in SIZES]
    with gr.Row():
        of_draft = [number("Draft", name, getattr(DRAFT, name)) for name in SIZES]
        apart = gr.Checkbox(False, label="Draft on a device of its own", min_width=160)
    says = gr.Markdown(READING, elem_id="machine-says")
    with gr.Column(visible=False) as body:
        with gr.Row():
            race, plain = captioned(), captioned()
        table = gr.Dataframe(headers=HEADERS, label="Cost on that machine", interactive=False)
        gr.Markdown(PLAIN, elem_classes="caption")
        forward = captioned()
    numbers = [*of_device, *of_target, *of_draft]

    def show_machine(value: str, theme: str, apart: bool, *given: float | None) -> dict:
        try:
            there, target, draft = parse_fields(list(given), apart)
            seen = screen(runs, value)
            if seen is None or not seen.lanes:
                return {says: NONE if value else READING, body: gr.Column(visible=False)}
            answer = estimate(seen, there, target, draft)
        except Refusal as error:
            return {says: escaped(str(error)), body: gr.Column(visible=False)}
        from visualizers.figures import other_machine as drawn  # on demand: plotly is slow to import

        shown, look = {"target": target, "draft": draft}, look_of(theme)
        names = {lane.number: lane.record.trace.title for lane in seen.lanes}
        return {
            says: f"**{escaped(answer['sentence'])}**",
            body: gr.Column(visible=True),
            table: cells(answer, names),
            **race.updates(drawn.tokens_by_time(answer, names, look)),
            **forward.updates(drawn.roofline(there, shown, look)),
            **plain.updates(drawn.against_plain(answer, look)),
        }

    def begin_with(name: str | None) -> list[float]:
        return list(asdict(DEVICES[name or FIRST]).values())[: len(of_device)]

    device.input(
        begin_with,
        device,
        of_device,
        **UNTRACKED,
        trigger_mode="always_last",
        api_visibility="private",
    )
    event = {
        "fn": show_machine,
        "inputs": [on_screen, look, apart, *numbers],
        "outputs": [says, body, table, *(part for one in (race, forward, plain) for part in one.parts)],
        **UNTRACKED,
        "trigger_mode": "always_last",
        "concurrency_limit": 4,
        "api_visibility": "private",
    }
    gr.on([apart.input, *(one.change for one in numbers)], **event)
    return lambda after: after(**event)


def number(group: str, name: str, value: float) -> gr.Number:
    """Declares the field of one figure, such as `Device: memory, in GB/s`."""
    words, unit = WORDS[name]
    return gr.Number(value, label=f"{group}: {words}, in {unit}", min_width=150)


def parse_fields(given: list[float | None], apart: bool) -> tuple[Device, Size, Size]:
    """Makes device, target and draft from the values of the fields, in order. Refusal with one sentence.

    An empty field becomes NaN, which `checked` rejects.
    """
    values = [math.nan if value is None else value for value in given]
    device, sizes = values[: len(FIGURES)], values[len(FIGURES) :]
    half = len(SIZES)
    return (
        checked(Device(*device, apart=apart)),
        checked(Size(*sizes[:half])),
        checked(Size(*sizes[half:])),
    )


def estimate(seen: Screen, device: Device, target: Size, draft: Size) -> dict:
    """Estimates the steps on screen on `device`: `{sentence, lanes}`, lanes as by `other_machine`."""
    lanes = [
        {"lane": one.number} | other_machine(one.record.trace, one.count, device, target, draft)
        for one in seen.lanes
    ]
    return {"sentence": sentence(device, target), "lanes": lanes}


def cells(answer: dict, names: dict[int, str]) -> list[list[str]]:
    """The rows of the table; a lane without a token or a forward gets dashes."""
    return [[f"{lane['lane']} {names[lane['lane']]}", *figures(lane)] for lane in answer["lanes"]]


def figures(lane: dict) -> list[str]:
    """The figures of a lane, in the order of HEADERS."""
    from visualizers.figures.charts import significant
    from visualizers.figures.other_machine import timed

    if not timed(lane):
        return [DASH] * (len(HEADERS) - 1)
    plain = lane["plain"]
    return [
        significant(1e3 * lane["seconds"] / lane["tokens"]),
        significant(plain["seconds"] / lane["seconds"]),
        significant(1e3 * lane["joules"] / lane["tokens"]),
        significant(lane["joules"] / plain["joules"]) if plain["joules"] else DASH,
        f"{lane['waited']:.0%}",
    ]
