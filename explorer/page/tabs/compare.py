"""The section Compare, below the lanes of the tab Decode: texts side by side, charts, and costs.

While it is visible it follows the run on screen (explorer/page/tabs/on_screen.py).
"""

import html

import gradio as gr

from decoders.refusal import Refusal
from explorer.export import comparison
from explorer.page.compare import compare_lanes
from explorer.page.tabs import UNTRACKED
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import follows, screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.comparison import CHARGES
from visualizers.analysis.cost_summary import COLUMNS

NO_RUN = "These settings have not been run yet: press Run, and their lanes are compared here."
# The browser remembers whether the section is open. By default it is open, except on a phone.
OPENED = "() => ({__type__: 'update', open: ExplorerPage.compareOpen()})"
KEEP = "() => {{ ExplorerPage.compareOpen({now!r}); }}"
ARRIVED = "() => setTimeout(() => ExplorerPage.app.compare.dress())"
DRAWN_AT_ONCE = 4  # redraws of all visitors together; others wait their turn


def build(on_screen: gr.HTML, look: gr.HTML, runs: Runs) -> None:
    """Declares the section. `on_screen`: see on_screen.py; `look`: its value is the page's theme."""
    with (
        gr.Accordion("Compare", open=False, elem_id="explorer-compare") as section,
        gr.Column(elem_classes=follows("compare")),
    ):
        texts = gr.HTML(apply_default_css=False, elem_id="explorer-compared")
        with gr.Column(visible=False) as body:
            with gr.Row():
                charge = gr.Radio(
                    [(words, key) for key, words in CHARGES.items()],
                    value="forwards",
                    label="Cost measured in",
                )
                likelihood = gr.Radio(
                    [(words, key) for key, words in comparison.LIKELIHOODS.items()],
                    value="mean",
                    label="Log-probability",
                )
            rows, places = {}, {}
            for names in comparison.ROWS:
                with gr.Row(visible=False) as rows[names]:
                    places |= {name: captioned() for name in names}
            table = gr.Dataframe(
                headers=["lane", *(column["name"] for column in COLUMNS)],
                label="All costs",
                interactive=False,
                pinned_columns=1,
                buttons=["copy", "fullscreen"],
                elem_id="explorer-costs",
            )
            with gr.Accordion("What the costs count", open=False):
                gr.Markdown("\n".join(map(definition, COLUMNS)))
        moment = gr.State(None)  # identifies what is drawn; nothing is redrawn while it stays the same
    section.expand(None, js=KEEP.format(now="open"), api_visibility="private")
    section.collapse(None, js=KEEP.format(now="closed"), api_visibility="private")
    gr.on(None, None, None, section, js=OPENED, api_visibility="private")

    def show_comparison(value: str, theme: str, charge: str, likelihood: str, before: tuple | None) -> dict:
        try:
            seen = screen(runs, value)
        except Refusal as error:
            return nothing(str(error))
        if seen is None or not seen.lanes or not seen.current:
            return nothing(NO_RUN)
        now = (seen.key, theme, charge, likelihood)
        if now == before:
            return {moment: now}
        result = compare_lanes(seen.run, [(lane.index, lane.number, lane.count) for lane in seen.lanes])
        updates = {moment: now, body: gr.Column(visible=True), table: comparison.table(result)}
        updates[texts] = tagged_with_run(seen.run.id, comparison.texts(result))
        charts = comparison.charts(result, charge, likelihood, look_of(theme))
        for names, row in rows.items():
            updates[row] = gr.Row(visible=names[0] in charts)
        for name, figure in charts.items():
            updates |= places[name].updates(figure)
        return updates

    def nothing(sentence: str) -> dict:
        message = tagged_with_run("", f"<p>{html.escape(sentence)}</p>")
        return {texts: message, body: gr.Column(visible=False), moment: None}

    plots = [component for place in places.values() for component in place.parts]
    drawn = gr.on(
        [on_screen.change, look.change, charge.input, likelihood.input],
        show_comparison,
        [on_screen, look, charge, likelihood, moment],
        [texts, body, table, moment, *rows.values(), *plots],
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=DRAWN_AT_ONCE,
        api_visibility="private",
    )
    drawn.then(None, js=ARRIVED, api_visibility="private")


def tagged_with_run(run: str, content: str) -> str:
    """HTML that carries the id of its run, so that the page's script never shows it beside another run."""
    return f'<div data-run="{html.escape(run)}">{content}</div>'


def definition(column: dict) -> str:
    """Explains a column of the cost table, as a line of Markdown."""
    return f"- **{escaped(column['name'])}** ({column['how']}): {escaped(column['title'])}"
