"""The tab Microscope: one speculative lane of the run on screen, and where its drafts were accepted.

Its sections have files of their own: what_if.py, losslessness.py, other_machine.py. Knows lanes and
visualizers.analysis.speculation_report, no strategy.
"""

from typing import Any

import gradio as gr

from explorer.page.tabs import losslessness, other_machine, rejections, what_if
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import FOLLOWS, Lane, Screen, screen
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES
from visualizers.analysis.speculation_report import microscope

ABOUT = (
    "One speculative lane of the run in Decode, up to the step at which its slider stands: which drafted "
    "tokens were accepted, and where drafting was in vain."
)
NONE = (
    "No lane of this run has drafted anything. Choose a speculative strategy in Decode, for example "
    "Speculative decoding, and press Run."
)
# The figures, a row each line: functions of visualizers.figures.microscope and .calibration.
ROWS = (
    ("round_by_round",),
    ("acceptance_by_depth", "draft_shape"),
    ("accepted_lengths", "acceptance_by_rank"),
    ("reliability", "tokens_a_round"),
    ("acceptance_by_class", "drafts_went"),
    ("drafting_time",),
)
DRAWN_AT_ONCE = 4  # redraws of all visitors together; others wait their turn


def build(on_screen: gr.HTML, look: gr.HTML, runs: Runs, loader: Loader) -> None:
    """Declares what is in the tab. `on_screen`: see on_screen.py; `look`: its value is the page's theme."""
    with gr.Column(elem_classes=FOLLOWS):
        gr.Markdown(ABOUT)
        lane = gr.Radio([(f"Lane {n + 1}", n) for n in range(MAX_LANES)], label="Lane", visible=False)
        sentence = gr.Markdown(NONE, elem_id="microscope-sentence")
        with gr.Column(visible=False) as body:
            places = {}
            for row in ROWS:
                with gr.Row():
                    places |= {name: captioned() for name in row}
            metrics = gr.Dataframe(
                headers=["Metric", "Value", "What it counts", "Formula"],
                label="vLLM's metrics of this lane",
                interactive=False,
                wrap=True,
                column_widths=["270px", "220px", "300px", "370px"],
            )
            moment = gr.State(None)  # what is drawn: as long as it stays the same, nothing is drawn again
            subject = gr.State(None)  # run and lane of it
            rejections.build(on_screen, lane, moment, runs)
            what_if.build(on_screen, look, lane, moment, runs)
            losslessness.build(on_screen, look, lane, subject, runs, loader)
        other_machine.build(on_screen, look, runs)

    def show_lane(value: str, theme: str, wanted: int | None, before: tuple | None) -> dict:
        nothing = {lane: gr.Radio(visible=False), body: gr.Column(visible=False)}
        nothing |= {moment: None, subject: None}
        try:
            found = screen(runs, value)
        except ValueError as error:
            return nothing | {sentence: escaped(str(error))}
        one = found.drafting(wanted) if found else None
        if one is None:
            return nothing | {sentence: NONE}
        names = tuple(each.title for each in found.drafting_lanes)
        now = (found.run.id, one.index, one.count, one.record.trace.ended, names, theme)
        if now == before:
            return {moment: now}
        report = microscope(one.record.trace, one.count)
        told = {lane: choices(found, one), sentence: f"**{escaped(report['sentence'])}**", moment: now}
        told[subject] = (found.run.id, one.index)
        if not report["metrics"]:
            return told | {body: gr.Column(visible=False)}
        told |= {body: gr.Column(visible=True), metrics: cells(report["metrics"])}
        for name, figure in figures(report, look_of(theme)).items():
            told |= places[name].shows(figure)
        return told

    plots = [component for place in places.values() for component in (place.plot, place.words)]
    gr.on(
        [on_screen.change, look.change, lane.input],
        show_lane,
        [on_screen, look, lane, moment],
        [lane, sentence, body, metrics, moment, subject, *plots],
        show_progress="hidden",
        trigger_mode="always_last",
        concurrency_limit=DRAWN_AT_ONCE,
        api_visibility="private",
    )


def choices(found: Screen, one: Lane) -> gr.Radio:
    """The lanes that draft, with `one` chosen; hidden where there is no choice."""
    names = [(each.title, each.index) for each in found.drafting_lanes]
    return gr.Radio(names, value=one.index, visible=len(names) > 1)


def figures(report: dict, look: str) -> dict[str, Any]:
    """Name in ROWS -> its Plotly figure."""
    from visualizers.figures import calibration  # only when one is looked at: plotly takes its time
    from visualizers.figures import microscope as drawn

    names = [name for row in ROWS for name in row]
    return {
        name: getattr(drawn if hasattr(drawn, name) else calibration, name)(report, look) for name in names
    }


def cells(metrics: list[dict]) -> list[list[str]]:
    """The rows of the table of metrics."""
    return [[one["name"], metric(one["value"]), one["words"], one["formula"]] for one in metrics]


def metric(value: int | float | list) -> str:
    """A metric's value: counts as they are, shares and means with three digits, lists one after the other."""
    if isinstance(value, list):
        return "  ".join(map(metric, value))
    return str(int(value)) if value == int(value) else f"{value:.3f}".removeprefix("0")
