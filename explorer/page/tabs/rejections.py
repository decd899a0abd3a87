"""Microscope: every rejected token of a lane, with its numbers, what stands there instead, and the cause.

Knows the lane on screen and visualizers.analysis.drafted_tokens, no strategy.
"""

import gradio as gr

from explorer.page.tabs.on_screen import screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.drafted_tokens import CAUSES, drafted_tokens, grouped

# Header -> column of drafted_tokens.
COLUMNS = {
    "Step": "step",
    "Position": "position",
    "Text before": "context",
    "Token": "token",
    "Instead": "instead",
    "p": "p",
    "q": "q",
    "u": "u",
    "min(1, p / q)": "acceptance",
    "Depth": "depth",
    "Lost": "lost",
    "Cause": "cause",
}
WORDS = ("context", "token", "instead", "cause")
NOTE = (
    "Lost: drafted tokens behind the rejected one that were never tested. ⋮ in a header sorts. "
    "In Decode, N and Shift+N step from one rejection to another. Traces saves it all as CSV."
)


def build(on_screen: gr.HTML, lane: gr.Radio, moment: gr.State, runs: Runs) -> None:
    """Declares the section; it follows `moment`, what the microscope shows of `lane`."""
    gr.Markdown("## Which tokens were rejected, and why?")
    says = gr.Markdown(elem_id="rejections-says")
    with gr.Column(visible=False) as body:
        causes = gr.Dataframe(
            headers=["Cause", "Rejected", "Lost", "The rule", "First one"],
            datatype=["str", "number", "number", "str", "str"],
            label="Rejections by cause",
            interactive=False,
            wrap=True,
            column_widths=["220px", "110px", "90px", "440px", "300px"],
        )
        # Not the table's own search field: it has no name that a screen reader could say.
        filter_words = gr.Textbox(label="Filter", placeholder="a token, its context, a cause", max_lines=1)
        table = gr.Dataframe(
            headers=list(COLUMNS),
            datatype=["str" if name in WORDS else "number" for name in COLUMNS.values()],
            label="Rejected tokens",
            interactive=False,
            wrap=True,
            max_height=420,
            elem_id="rejected-tokens",
            column_widths=[
                "80px",
                "100px",
                "330px",
                "120px",
                "120px",
                *["95px"] * 3,
                "140px",
                *["90px"] * 2,
                "230px",
            ],
        )
        gr.Markdown(NOTE, elem_classes="caption")

    def show_rejections(value: str, wanted: int | None, words: str | None) -> dict:
        try:
            found = screen(runs, value)
        except ValueError:  # the microscope says what is wrong
            found = None
        one = found.drafting(wanted) if found else None
        if one is None:
            return {says: "", body: gr.Column(visible=False)}
        rows = drafted_tokens(one.record.trace, one.count)
        rejected = [row for row in rows if row["fate"] == "rejected"]
        updates = {says: sentence(len(rows), rejected), body: gr.Column(visible=bool(rejected))}
        by_cause = [
            [g["cause"], g["rejected"], g["lost"], CAUSES[g["cause"]], g["example"]]
            for g in grouped(rows, "cause")
        ]
        return updates | {causes: by_cause, table: [cells(row) for row in filtered(rejected, words or "")]}

    gr.on(
        [moment.change, filter_words.change],
        show_rejections,
        [on_screen, lane, filter_words],
        [says, body, causes, table],
        show_progress="hidden",
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )


def sentence(drafted: int, rejected: list[dict]) -> str:
    """How many tokens were rejected, and what they cost, in words."""
    if not rejected:
        return "No drafted token has been rejected so far."
    lost, many = sum(row["lost"] for row in rejected), len(rejected)
    was, more = ("was" if many == 1 else "were"), ("token" if lost == 1 else "tokens")
    return (
        f"{many} of {drafted} drafted tokens {was} rejected, and {lost} more {more} behind them never tested."
    )


def filtered(rows: list[dict], words: str) -> list[dict]:
    """The rows that hold every one of these words in token, context, replacement or cause."""
    wanted = words.casefold().split()
    return [row for row in rows if all(word in text_of(row) for word in wanted)]


def text_of(row: dict) -> str:
    """What a filter looks at."""
    return " ".join(row[name] or "" for name in WORDS).casefold()


def cells(row: dict) -> list:
    """A rejected token as a row: probabilities with four places, blanks where nothing is known."""
    values = (row[name] for name in COLUMNS.values())
    return [round(value, 4) if isinstance(value, float) else value for value in values]
