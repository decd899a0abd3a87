"""Microscope: what if the draft had another shape? Recomputed from the lane's trace."""

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.tabs import UNTRACKED
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.draft_what_if import fastest, what_if

MAX_TEXT = 400  # characters of the field with the shape
LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)  # of the chains in the table, besides the fastest and the lane's own
HEADERS = ["Draft", "Tokens per round", "Target forwards", "Drafted per full round", "Speed"]
DASH = "—"
GAIN = (
    "Speed, as a multiple of plain decoding: tokens per round / (1 + levels × cost of a draft forward), if a "
    "verification forward costs the same for any number of tokens."
)
NO_NUMBER = "Stop below takes a probability from 0 to 1."


def build(on_screen: gr.HTML, look: gr.HTML, lane: gr.Radio, moment: gr.State, runs: Runs) -> None:
    """Declares the section; it follows `moment`, what the microscope shows of `lane`."""
    gr.Markdown("## What if the draft had another shape?", elem_id="another-shape")
    with gr.Row():
        widths = gr.Textbox(
            "3 2 1 1",
            label="Children, level by level",
            info="Tokens drafted after each node; 1 1 1 is a chain of three.",
            scale=2,
        )
        below = gr.Number(
            0,
            label="Stop below",
            info="Drafting stops where the draft's first choice is less probable than this; 0: never.",
            scale=2,
        )
        compute = gr.Button("Compute", size="md", scale=0, min_width=120)
    says = gr.Markdown(elem_id="what-if-says")
    with gr.Column(visible=False) as body:
        with gr.Row():
            tokens, faster = captioned(), captioned()
        table = gr.Dataframe(
            headers=HEADERS,
            label="Other drafts",
            interactive=False,
            wrap=True,
            column_widths=["260px", "220px", "220px", "260px", "190px"],
        )
        gr.Markdown(GAIN, elem_classes="caption")

    def show_shapes(
        value: str, theme: str, wanted: int | None, widths: str | None, below: float | None
    ) -> dict:
        try:
            seen = screen(runs, value)
            one = seen.drafting(wanted) if seen else None
            if one is None:  # the microscope says what to do
                return {body: gr.Column(visible=False)}
            if below is None:
                raise Refusal(NO_NUMBER)
            other = what_if(one.record.trace, one.count, levels(widths or ""), below)
        except Refusal as error:
            return {says: escaped(str(error)), body: gr.Column(visible=False)}
        if not other["known"]:
            return {says: escaped(other["sentence"]), body: gr.Column(visible=False)}
        from visualizers.figures import what_if as drawn  # on demand: plotly is slow to import

        updates = {says: "", body: gr.Column(visible=True), table: cells(other)}
        updates |= tokens.updates(drawn.tokens_per_round(other, one.number, look_of(theme)))
        return updates | faster.updates(drawn.speed(other, look_of(theme)))

    gr.on(
        [moment.change, compute.click, widths.submit, below.submit],
        show_shapes,
        [on_screen, look, lane, widths, below],
        [says, body, table, tokens.plot, tokens.words, faster.plot, faster.words],
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )


def levels(text: str) -> list[int]:
    """Parses a text such as "3 2 1" or "3, 2, 1"; returns an empty list for anything else."""
    parts = text.replace(",", " ").split() if len(text) < MAX_TEXT else []
    return [int(one) for one in parts] if all(one.isascii() and one.isdigit() for one in parts) else []


def cells(other: dict) -> list[list[str]]:
    """The rows of the table: the lane itself, the requested shape, and chains."""
    from visualizers.figures.what_if import shape, span

    own, chains, run = other["own"], other["chains"], other["run"]
    quickest = fastest(chains)
    mark = " (fastest)" if other["exact"] else " (fastest by this estimate)"
    asked = " ".join(map(str, own["widths"]))
    rows = [(asked, own)]
    for row in chains:
        length, fast = len(row["widths"]), mark if row is quickest else ""
        if length in (*LENGTHS, run["deepest"]) or fast:
            like = " (as in this lane)" if length == run["deepest"] else ""
            rows.append((shape(row["widths"]) + like + fast, row))
    return [
        ["this lane, measured", f"{run['tokens']:.2f}", str(run["rounds"]), DASH, DASH],
        *(
            [
                name,
                span(row["tokens"], 2),
                span(row["rounds"], 0 if other["exact"] else 1),
                str(row["size"]),
                f"{span(row['speedup'], 2)} × plain decoding" if row["speedup"] else DASH,
            ]
            for name, row in rows
        ),
    ]
