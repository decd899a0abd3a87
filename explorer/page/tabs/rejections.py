"""Microscope: every rejected token of a lane with its numbers, its replacement, and the cause.

Knows the lane on screen and visualizers.analysis.drafted_tokens, no strategy.
"""

import json

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.tabs import UNTRACKED, carried
from explorer.page.tabs.on_screen import Lane, screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.drafted_tokens import drafted_tokens, grouped
from visualizers.analysis.rejection_causes import CAUSES

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
    "Discarded": "discarded",
    "Cause": "cause",
}
PLACE = ("step", "position", "token", "depth")  # the columns that identify a row
WORDS = ("context", "token", "instead", "cause")
GROUPS = {"Cause": "cause", "Token": "token", "Kind of token": "class"}
NOTE = (
    "A click or Enter on a row opens its round in Decode. Discarded: drafted tokens after the rejected one "
    "that were never tested. ⋮ in a header sorts. In Decode, N and Shift+N go to the next and previous "
    "rejection. The tab Traces saves all of it as CSV."
)
OPEN = "(text) => text && ExplorerPage.goToToken(JSON.parse(text))"


def build(on_screen: gr.HTML, lane: gr.Radio, moment: gr.State, runs: Runs) -> None:
    """Declares the section; it follows `moment`, what the microscope shows of `lane`."""
    gr.Markdown("## Which tokens were rejected, and why?")
    says = gr.Markdown(elem_id="rejections-says")
    opened = carried()
    with gr.Column(visible=False) as body:
        by = gr.Radio(list(GROUPS.items()), value="cause", label="Group by")
        groups = gr.Dataframe(
            headers=["Group", "Rejected", "Share", "Discarded", "Why", "Example"],
            datatype=["str", "number", "str", "number", "str", "str"],
            label="Rejections by group: click one to list its tokens below",
            interactive=False,
            wrap=True,
            max_height=420,
            elem_id="rejections-grouped",
            column_widths=["200px", "100px", "150px", "110px", "280px", "310px"],
        )
        # Not the table's own search field, which has no accessible name for screen readers.
        filter_words = gr.Textbox(
            label="Filter",
            placeholder='a token, its context, a cause; "in quotes": exact match',
            max_lines=1,
        )
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

    def lane_seen(value: str, wanted: int | None) -> Lane | None:
        try:
            seen = screen(runs, value)
        except Refusal:  # the microscope says what is wrong
            seen = None
        return seen.drafting(wanted) if seen else None

    def show_rejections(value: str, wanted: int | None, by: str | None, words: str | None) -> dict:
        one = lane_seen(value, wanted)
        if one is None:
            return {says: "", body: gr.Column(visible=False)}
        rows = drafted_tokens(one.record.trace, one.count)
        rejected = [row for row in rows if row["fate"] == "rejected"]
        updates = {says: sentence(len(rows), rejected), body: gr.Column(visible=bool(rejected))}
        shown = [cells(row) for row in filtered(rejected, words or "")]
        return updates | {groups: grouped_cells(rows, by or "cause"), table: shown}

    def keep_group(picked: gr.SelectData) -> str:
        return f'"{picked.row_value[0]}"'

    def open_token(value: str, wanted: int | None, picked: gr.SelectData) -> str:
        one = lane_seen(value, wanted)
        return "" if one is None else token_link(one, picked.row_value)

    gr.on(
        [moment.change, filter_words.change, by.input],
        show_rejections,
        [on_screen, lane, by, filter_words],
        [says, body, groups, table],
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )
    groups.select(keep_group, None, filter_words, **UNTRACKED, api_visibility="private")
    click = table.select(open_token, [on_screen, lane], opened, **UNTRACKED, api_visibility="private")
    click.success(None, opened, None, js=OPEN)


def token_link(one: Lane, row: list) -> str:
    """Lane, step and node of the token in a table row, as JSON for the page's script; empty if not found."""
    cells = dict(zip(COLUMNS.values(), row, strict=False))
    for token in drafted_tokens(one.record.trace, one.count):
        if token["fate"] == "rejected" and all(str(token[name]) == str(cells.get(name)) for name in PLACE):
            return json.dumps({"lane": one.number, "step": token["step"], "node": token["node"]})
    return ""


def sentence(drafted: int, rejected: list[dict]) -> str:
    """Says how many tokens were rejected and how many were discarded with them."""
    if not rejected:
        return "No drafted token has been rejected so far."
    discarded, many = sum(row["discarded"] for row in rejected), len(rejected)
    was, more = ("was" if many == 1 else "were"), ("token" if discarded == 1 else "tokens")
    head = f"{many} of {drafted} drafted tokens {was} rejected"
    return f"{head}, and {discarded} more {more} after them never tested."


def grouped_cells(rows: list[dict], by: str) -> list[list]:
    """The rows of the table of groups. `by`: a column of `drafted_tokens`."""
    made = grouped(rows, by)
    rejected = sum(one["rejected"] for one in made)
    return [
        [
            one[by],
            one["rejected"],
            f"{one['rejected']} of {rejected} rejections"
            if by == "cause"
            else f"{one['rejected']} of {one['tested']} tested",
            one["discarded"],
            CAUSES[one["cause"]] if by == "cause" else causes(one["causes"]),
            one["example"],
        ]
        for one in made
    ]


def causes(counts: dict[str, int]) -> str:
    """The causes of a group's rejections with their counts: `near tie 3, bad luck 1`."""
    return ", ".join(f"{cause} {count}" for cause, count in counts.items())


def filtered(rows: list[dict], words: str) -> list[dict]:
    """The rows that contain each of these words in token, context, replacement or cause.

    A quoted text must equal the whole token, cause or kind of token.
    """
    text = words.strip()
    if len(text) > 2 and text[0] == text[-1] == '"':
        return [row for row in rows if text[1:-1] in (row[name] for name in GROUPS.values())]
    wanted = text.casefold().split()
    return [row for row in rows if all(word in text_of(row) for word in wanted)]


def text_of(row: dict) -> str:
    """The text of a row in which the filter searches."""
    return " ".join(row[name] or "" for name in WORDS).casefold()


def cells(row: dict) -> list:
    """A rejected token as a table row; numbers have four decimals, unknown values stay blank."""
    values = (row[name] for name in COLUMNS.values())
    return [round(value, 4) if isinstance(value, float) else value for value in values]
