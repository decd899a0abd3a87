"""Microscope, *Loops and thinking*: the spans and loops of any lane's text and what was measured in them."""

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.tabs import UNTRACKED, leave_loop
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import READING, any_lane, screen
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES
from visualizers.analysis.loops_and_thinking import cells, loops_and_thinking

ABOUT = (
    "A loop is a stretch of text that is repeated right after itself. Reasoning, answer and tool calls are "
    "recognised by their delimiters, `<think>` and `</think>` unless a lane sets others. *Fold loops* in "
    "Decode shows a loop once."
)
NONE = "Press Run in Decode: there is no lane yet."
HEADERS = ["Span", "Tokens", "Entropy", "Acceptance", "Loss: total variation"]


def build(on_screen: gr.HTML, look: gr.HTML, runs: Runs, loader: Loader) -> None:
    """Declares the section."""
    gr.Markdown(f"## Loops and thinking\n{ABOUT}", elem_id="loops")
    lanes = [(f"Lane {n + 1}", n) for n in range(MAX_LANES)]
    lane = gr.Dropdown(lanes, value=None, label="Lane of the text", visible=False)
    says = gr.Markdown(READING, elem_id="loops-says")
    with gr.Column(visible=False) as body:
        table = gr.Dataframe(
            headers=HEADERS, label="Spans", interactive=False, wrap=True, elem_id="loops-spans"
        )
        with gr.Column(visible=False) as thinking:
            ends = captioned(wide=True)
        with gr.Column(visible=False) as looping:
            leave = leave_loop.build(on_screen, look, lane, runs, loader)
    moment = gr.State(None)  # identifies what is drawn; nothing is redrawn while it stays the same

    def show_spans(value: str, theme: str, wanted: int | None, before: tuple | None) -> dict:
        nothing = {lane: gr.Dropdown(visible=False), body: gr.Column(visible=False), moment: None}
        try:
            seen = screen(runs, value)
        except Refusal as error:
            return nothing | {says: escaped(str(error))}
        one = any_lane(seen, wanted)
        if seen is None or one is None:
            return nothing | {says: NONE if value else READING}
        trace = one.record.trace
        now = (seen.run.id, one.index, one.count, trace.ended, len(seen.lanes), theme)
        if now == before:
            return {moment: now}
        report = loops_and_thinking(trace, one.count)
        known = any(p is not None for p in report.ends.values())
        names = [(each.title, each.index) for each in seen.lanes]
        updates = leave.cleared() | {
            lane: gr.Dropdown(names, value=one.index, visible=len(names) > 1),
            says: f"**{escaped(report.sentence)}**",
            body: gr.Column(visible=True),
            table: gr.Dataframe(cells(report), headers=HEADERS if report.lossy else HEADERS[:-1]),
            thinking: gr.Column(visible=known),
            looping: gr.Column(visible=bool(report.loops)),
            moment: now,
        }
        if not known:
            return updates
        from visualizers.figures import loops as drawn  # on demand: plotly is slow to import

        return updates | ends.updates(drawn.end_of_thinking(report, look_of(theme)))

    gr.on(
        [on_screen.change, look.change, lane.input],
        show_spans,
        [on_screen, look, lane, moment],
        [lane, says, body, table, thinking, looping, moment, *leave.cleared(), *ends.parts],
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )
