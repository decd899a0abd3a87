"""The tab Microscope: shows for one speculative lane of the run on screen where its drafts were accepted.

Its sections are in files of their own: rejections.py, what_if.py, losslessness.py, other_machine.py,
loops.py, which follows any lane, and doctor.py and acceptance.py, which follow none.
"""

from collections.abc import Iterable
from typing import Any

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.tabs import (
    UNTRACKED,
    acceptance,
    contents,
    doctor,
    loops,
    losslessness,
    mark_at_work,
    other_machine,
    rejections,
    unmark,
    what_if,
)
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.metrics import metrics_table, rows
from explorer.page.tabs.on_screen import READING, Lane, Screen, follows, screen
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES
from visualizers.analysis.speculation_report import microscope

ABOUT = (
    "One speculative lane of the run in Decode, up to the step of its slider: which drafted "
    "tokens were accepted, and where drafting was wasted."
)
NONE = (
    "No lane of this run has drafted anything. Choose a speculative strategy in Decode, for example "
    "Speculative decoding, and press Run."
)
# The figures, row by row: functions of visualizers.figures.microscope, .draft_positions and .calibration.
ROWS = (
    ("round_by_round",),
    ("acceptance_by_depth", "draft_shape"),
    ("accepted_lengths", "acceptance_by_rank"),
    ("reliability", "tokens_per_round"),
    ("acceptance_by_class", "acceptance_by_entropy"),
    ("drafted_token_fates", "drafting_time"),
)
FIRST = [name for row in ROWS[:2] for name in row]  # at the top of the page, drawn before the others
OTHERS = [name for row in ROWS[2:] for name in row]
SECTIONS = {  # their headings' ids -> how the contents list calls them
    "rejections": "Rejections",
    "round-by-round": "Round by round",
    "another-shape": "Another shape",
    "losslessness": "Losslessness",
    "another-machine": "Another machine",
    "loops": "Loops and thinking",
    "draft-doctor": "Draft doctor",
    "many-prompts": "Many prompts",
}
QUIETLY = {
    **UNTRACKED,
    "trigger_mode": "always_last",
    "concurrency_limit": 4,  # redraws of all visitors that can run at the same time; further ones wait
    "api_visibility": "private",
}


def build(
    tab: gr.Tab, on_screen: gr.HTML, look: gr.HTML, runs: Runs, loader: Loader, opened: gr.HTML
) -> None:
    """Declares the tab's contents. `on_screen`: see on_screen.py; `look`: its value is the page's theme; what
    `opened` gets, the page shows as a run that was opened.
    """
    contents.build(SECTIONS)
    with gr.Column(elem_classes=follows("microscope")):
        gr.Markdown(ABOUT)
        lane = gr.Radio([(f"Lane {n + 1}", n) for n in range(MAX_LANES)], label="Lane", visible=False)
        sentence = gr.Markdown(READING, elem_id="microscope-sentence")
        moment = gr.State(None)  # identifies what is drawn; nothing is redrawn while it stays the same
        rejections.build(on_screen, lane, moment, runs)
        with gr.Column(visible=False) as body:
            gr.Markdown("## Round by round", elem_id="round-by-round")
            places = {}
            for row in ROWS:
                with gr.Row():
                    places |= {name: captioned() for name in row}
            metrics = metrics_table("vLLM's metrics of this lane")
            subject = gr.State(None)  # its run and lane
            left = gr.State(None)  # the report whose other figures are still to be drawn
            what_if.build(on_screen, look, lane, moment, runs)
            losslessness.build(on_screen, look, lane, subject, runs, loader)
        machine = other_machine.build(on_screen, look, runs)
        loops.build(on_screen, look, runs, loader)
    doctor.build(tab, on_screen, look, runs, loader)
    acceptance.build(tab, on_screen, look, runs, loader, opened)

    def show_lane(value: str, theme: str, wanted: int | None, before: tuple | None) -> dict:
        nothing = {lane: gr.Radio(visible=False), body: gr.Column(visible=False)}
        nothing |= {moment: None, subject: None}
        try:
            seen = screen(runs, value)
        except Refusal as error:
            return nothing | {sentence: escaped(str(error))}
        one = seen.drafting(wanted) if seen else None
        if one is None:
            return nothing | {sentence: NONE if value else READING}
        names = tuple(each.title for each in seen.drafting_lanes)
        now = (seen.run.id, one.index, one.count, one.record.trace.ended, names, theme)
        if now == before:
            return {moment: now}
        report = microscope(one.record.trace, one.count)
        updates = {lane: choices(seen, one), sentence: f"**{escaped(report['sentence'])}**", moment: now}
        updates[subject] = (seen.run.id, one.index)
        if not report["metrics"]:
            return updates | {body: gr.Column(visible=False)}
        updates |= {body: gr.Column(visible=True), metrics: rows(report["metrics"]), left: report}
        return updates | shown(report, theme, *FIRST)

    def show_others(theme: str, report: dict | None) -> dict:
        """Draws the figures below the first rows. They come in an answer of their own, since a browser shows
        nothing of an answer before it has drawn all of it.
        """
        return {left: None} | (shown(report, theme, *OTHERS) if report else {})

    def shown(report: dict, theme: str, *names: str) -> dict:
        made = figures(report, look_of(theme), names)
        return {part: update for name in names for part, update in places[name].updates(made[name]).items()}

    first = [part for name in FIRST for part in places[name].parts]
    drawn = gr.on(
        [on_screen.change, look.change, lane.input],
        show_lane,
        [on_screen, look, lane, moment],
        [lane, sentence, body, metrics, moment, subject, left, *first],
        js=mark_at_work("microscope-sentence"),
        **QUIETLY,
    )
    unmark(drawn, "microscope-sentence")
    others = [part for name in OTHERS for part in places[name].parts]
    drawn = drawn.then(show_others, [look, left], [left, *others], **QUIETLY)
    machine(drawn.then)  # this section is the last one on the page, so it is drawn last


def choices(seen: Screen, one: Lane) -> gr.Radio:
    """The choice of lanes that draft, with `one` chosen; hidden if there is only one."""
    names = [(each.title, each.index) for each in seen.drafting_lanes]
    return gr.Radio(names, value=one.index, visible=len(names) > 1)


def figures(report: dict, look: str, names: Iterable[str]) -> dict[str, Any]:
    """Maps each name to its Plotly figure."""
    from visualizers.figures import calibration, draft_positions  # on demand: plotly is slow to import
    from visualizers.figures import microscope as over_all

    known = vars(over_all) | vars(draft_positions) | vars(calibration)
    return {name: known[name](report, look) for name in names}
