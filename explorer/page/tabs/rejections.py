"""Microscope: every rejected token of a lane with its numbers, its replacement and the cause, and its test
beside the table.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass

import gradio as gr

from decoders.refusal import Refusal
from explorer.inspector.token_facts import inspect
from explorer.markup import h
from explorer.page.tabs import UNTRACKED, carried
from explorer.page.tabs.on_screen import Lane, screen
from explorer.runs.scheduler import Runs
from visualizers.analysis.drafted_tokens import drafted_tokens, grouped
from visualizers.analysis.rejection_causes import CAUSES

# Header -> column of drafted_tokens.
COLUMNS = {
    "Position": "position",
    "Text before": "context",
    "Token": "token",
    "Instead": "instead",
    "Cause": "cause",
    "p": "p",
    "q": "q",
    "u": "u",
    "min(1, p / q)": "acceptance",
    "Depth": "depth",
    "Discarded": "discarded",
    "Step": "step",
}
WORDS = ("context", "token", "instead", "cause")
GROUPS = {"Cause": "cause", "Token": "token", "Kind of token": "class"}
SORTS = {
    "position": "position",
    "q, the largest first": "q",
    "p, the largest first": "p",
    "overconfidence: q − p": "excess",
    "depth": "depth",
    "discarded tokens": "discarded",
}
# pixels; others: 70
WIDTHS = dict(position=86, context=180, token=92, instead=92, cause=128, acceptance=110, discarded=94)
LATER = "opacity: 0.45"  # of a row that the slider in Decode has not come to
HERE = "font-weight: 700"  # of the row that is opened beside the table
NOTE = (
    "A click opens a row beside the table; ↑ and ↓, or N and Shift+N, step through the rows. The table "
    "shows the whole run; rows that the slider in Decode has not reached are dim. Discarded: drafted tokens "
    "after the rejected one that were never tested. The tab Traces saves all of it as CSV."
)
OPEN = "(text) => text && ExplorerPage.goToToken(JSON.parse(text))"
NO_ROW = "<p>No rejected token matches.</p>"


@dataclass(frozen=True)
class Parts:
    """The components of the section that its events read and write."""

    says: gr.Markdown
    body: gr.Column
    filter_words: gr.Textbox
    sort: gr.Dropdown
    table: gr.Dataframe
    before: gr.Button
    after: gr.Button
    go: gr.Button
    card: gr.HTML
    by: gr.Radio
    groups: gr.Dataframe


def declared() -> Parts:
    """Declares the components: the table at the left, at the right the test of the row that is opened."""
    gr.Markdown("## Which tokens were rejected, and why?", elem_id="rejections")
    made: dict = {"says": gr.Markdown(elem_id="rejections-says")}
    with gr.Column(visible=False) as made["body"]:
        with gr.Row(elem_classes="rejections-place"):
            with gr.Column(scale=7, min_width=340):
                with gr.Row():
                    # Not the table's own search field, which has no accessible name for screen readers.
                    made["filter_words"] = gr.Textbox(
                        label="Filter",
                        placeholder='a token, its context, a cause; "in quotes": exact match',
                        max_lines=1,
                        scale=2,
                    )
                    made["sort"] = gr.Dropdown(list(SORTS.items()), value="position", label="Sort by")
                made["table"] = gr.Dataframe(
                    headers=list(COLUMNS),
                    label="Rejected tokens",
                    interactive=False,
                    wrap=True,
                    max_height=520,
                    elem_id="rejected-tokens",
                )
            with gr.Column(scale=4, min_width=340):
                with gr.Row(elem_classes="rejections-walk"):
                    made["before"] = gr.Button("↑ Previous", elem_id="rejections-before", size="sm")
                    made["after"] = gr.Button("↓ Next", elem_id="rejections-after", size="sm")
                made["card"] = gr.HTML(NO_ROW, apply_default_css=False, elem_id="rejection-card")
                made["go"] = gr.Button("Open its round in Decode", elem_id="rejections-open", size="sm")
        gr.Markdown(NOTE, elem_classes="caption")
        made["by"] = gr.Radio(list(GROUPS.items()), value="cause", label="Group by")
        made["groups"] = gr.Dataframe(
            headers=["Group", "Rejected", "Share", "Discarded", "Why", "Example"],
            datatype=["str", "number", "str", "number", "str", "str"],
            label="Rejections by group: click one to list its tokens above",
            interactive=False,
            wrap=True,
            max_height=420,
            elem_id="rejections-grouped",
            column_widths=["200px", "100px", "150px", "110px", "280px", "310px"],
        )
    return Parts(**made)


def build(on_screen: gr.HTML, lane: gr.Radio, moment: gr.State, runs: Runs) -> None:
    """Declares the section; it follows `moment`, what the microscope shows of `lane`."""
    parts, opened = declared(), carried()
    listed, chosen = gr.State(None), gr.State(None)  # nodes of the rows in order; that of the opened row

    def lane_seen(value: str, wanted: int | None) -> Lane | None:
        try:
            seen = screen(runs, value)
        except Refusal:  # the microscope says what is wrong
            seen = None
        return seen.drafting(wanted) if seen else None

    def show_rejections(
        value: str, wanted: int | None, by: str | None, words: str | None, sort: str | None, node: int | None
    ) -> dict:
        one = lane_seen(value, wanted)
        if one is None:
            return {parts.says: "", parts.body: gr.Column(visible=False), listed: []}
        rows = drafted_tokens(one.record.trace)
        rejected = [row for row in rows if row["fate"] == "rejected"]
        shown = in_order(filtered(rejected, words or ""), sort or "position")
        nodes = [row["node"] for row in shown]
        here = walked(nodes, node, 0)
        opened_row = next((row for row in shown if row["node"] == here), None)
        updates = {parts.says: sentence(len(rows), rejected), parts.body: gr.Column(visible=bool(rejected))}
        updates |= {parts.groups: grouped_cells(rows, by or "cause"), listed: nodes}
        return updates | {
            parts.table: table_of(shown, rejected, one.count, here),
            parts.card: card_of(one, opened_row),
        }

    def keep_group(picked: gr.SelectData) -> str:
        return f'"{picked.row_value[0]}"'

    def pick_row(value: str, wanted: int | None, nodes: list[int] | None, picked: gr.SelectData) -> dict:
        one, at = lane_seen(value, wanted), picked.index[0]
        node = nodes[at] if nodes and 0 <= at < len(nodes) else None
        return {chosen: node, parts.card: card_of(one, row_of(one, node))}

    def earlier(nodes: list[int] | None, node: int | None) -> int | None:
        return walked(nodes or [], node, -1)

    def later(nodes: list[int] | None, node: int | None) -> int | None:
        return walked(nodes or [], node, 1)

    def open_row(value: str, wanted: int | None, nodes: list[int] | None, node: int | None) -> str:
        one = lane_seen(value, wanted)
        return "" if one is None else token_link(one, walked(nodes or [], node, 0))

    shown = [on_screen, lane, parts.by, parts.filter_words, parts.sort, chosen]
    gr.on(
        [moment.change, parts.filter_words.change, parts.by.input, parts.sort.input, chosen.change],
        show_rejections,
        shown,
        [parts.says, parts.body, parts.groups, parts.table, listed, parts.card],
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )
    parts.groups.select(keep_group, None, parts.filter_words, **UNTRACKED, api_visibility="private")
    seen = [on_screen, lane, listed]
    parts.table.select(pick_row, seen, [chosen, parts.card], **UNTRACKED, api_visibility="private")
    parts.before.click(earlier, [listed, chosen], chosen, **UNTRACKED, api_visibility="private")
    parts.after.click(later, [listed, chosen], chosen, **UNTRACKED, api_visibility="private")
    click = parts.go.click(open_row, [*seen, chosen], opened, **UNTRACKED, api_visibility="private")
    click.success(None, opened, None, js=OPEN)


def walked(nodes: list[int], node: int | None, by: int) -> int | None:
    """The node that many rows on, None where there is no row. A node that is in none stands for the first."""
    at = (nodes.index(node) if node in nodes else 0) + by
    return nodes[min(max(at, 0), len(nodes) - 1)] if nodes else None


def row_of(one: Lane | None, node: int | None) -> dict | None:
    """The row of a rejected token of a lane, None if there is none."""
    rows = drafted_tokens(one.record.trace) if one else []
    return next((row for row in rows if row["node"] == node and row["fate"] == "rejected"), None)


def token_link(one: Lane, node: int | None) -> str:
    """Lane, step and node of a rejected token, as JSON for the page's script; empty if there is none."""
    row = row_of(one, node)
    return json.dumps({"lane": one.number, "step": row["step"], "node": node}) if row else ""


def card_of(one: Lane | None, row: dict | None) -> str:
    """The test of a rejected token as HTML: what happened in words, and bars of p, q and the residual."""
    from explorer.inspector.card import verdicts  # needs what few tabs need
    from explorer.inspector.pictures import pictures

    if one is None or row is None:
        return NO_ROW
    facts = inspect(one.record.trace, row["node"])
    title = f"Position {row['position']}, step {row['step']}: “{row['token']}”"
    title += f" or “{row['instead']}”?" if row["instead"] else ""
    cause = h("p", "", f"{row['cause'][:1].upper()}{row['cause'][1:]}: {CAUSES[row['cause']]}")
    parts = [h("h3", "title", title), h("p", "path", row["context"]), *verdicts(facts), cause]
    return h("div", "explorer", h("div", "inspector in-place", *parts, pictures(facts, False)))


def in_order(rows: list[dict], sort: str) -> list[dict]:
    """The rows sorted by one of SORTS; a number that is not known comes last."""
    if sort == "position":
        return rows

    def size(row: dict) -> float:
        if sort == "excess":
            return -math.inf if None in (row["p"], row["q"]) else row["q"] - row["p"]
        return -math.inf if row[sort] is None else row[sort]

    return sorted(rows, key=lambda row: -size(row))


def table_of(rows: list[dict], rejected: list[dict], count: int, node: int | None) -> gr.Dataframe:
    """The table of some of the rejected tokens, without the columns that are empty in all of them.

    count: steps up to which rows are not dim; node: of the row that is opened.
    """
    columns = [name for name, of in COLUMNS.items() if any(row[of] is not None for row in rejected)]
    names = [COLUMNS[name] for name in columns]
    styles = ["; ".join([*[LATER] * (row["step"] > count), *[HERE] * (row["node"] == node)]) for row in rows]
    many = f"{len(rows)} of {len(rejected)}" if len(rows) < len(rejected) else len(rows)
    return gr.Dataframe(
        {
            "headers": columns,
            "data": [cells(row, names) for row in rows],
            "metadata": {"styling": [[style] * len(names) for style in styles]},
        },
        datatype=["str" if name in WORDS else "number" for name in names],
        column_widths=[f"{WIDTHS.get(name, 70)}px" for name in names],
        label=f"{many} rejected tokens",
    )


def sentence(drafted: int, rejected: list[dict]) -> str:
    """Says how many tokens were rejected, for which causes, and how many were discarded with them."""
    if not rejected:
        return "No drafted token has been rejected so far."
    discarded, many = sum(row["discarded"] for row in rejected), len(rejected)
    was, more = ("was" if many == 1 else "were"), ("token" if discarded == 1 else "tokens")
    head = f"{many} of {drafted} drafted tokens {was} rejected"
    why = causes(dict(Counter(row["cause"] for row in rejected).most_common(3)))
    return f"**{head}** ({why}), and {discarded} more {more} after them never tested."


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


def cells(row: dict, names: list[str]) -> list:
    """A rejected token as a table row; numbers have four decimals, unknown values stay blank."""
    values = (row[name] for name in names)
    return [round(value, 4) if isinstance(value, float) else value for value in values]
