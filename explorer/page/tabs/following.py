"""Traces: the requests that vLLM records into the folder of `--follow`, the newest first; a click on a row
follows the request as a lane. The table is renewed while it can be seen.
"""

import asyncio
import json

import gradio as gr

from decoders.refusal import Refusal
from decoders.watch.vllm.folder import Folder, Recorded
from explorer.page.save_and_open import follow_file
from explorer.page.tabs import UNTRACKED, carried
from explorer.page.tabs.captioned import escaped
from explorer.page_requests import Session
from explorer.runs.scheduler import Runs
from explorer.schema import Asked, Whole, parsed, read

ABOUT = (
    "## Requests being recorded\nThe newest come first. Click a row to follow the request as a lane *from "
    "vLLM*, which grows as vLLM writes."
)
EMPTY = "No request has been recorded yet."
HEADERS = ["began", "tokens", "accepted", "steps", "state", "request"]
WIDTHS = ["170px", "76px", "110px", "70px", "320px", "320px"]
EVERY = 1500  # milliseconds between two looks at the folder
ELEMENT = "explorer-recorded"
TICK = f"ExplorerPage.whileSeen('#{ELEMENT}', {EVERY}, (text) => {{ props.value = text; }});"
NOT_YET = "The table is still being read; try again in a moment."


class Seen(Asked):
    """What the page says while the table can be seen: whose page it is, and a number that counts."""

    session: Session
    number: Whole


def build(runs: Runs, folder: Folder, answer: gr.HTML, says: gr.Markdown, opened: str) -> None:
    """Declares the section. `answer`: receives the run for the page's script, which `opened` calls."""
    with gr.Column(elem_id=ELEMENT):
        about = gr.Markdown(f"{ABOUT}\n\n{EMPTY}")
        newest = gr.Button("Follow the newest", size="md", scale=0, min_width=160)
        rows = gr.Dataframe(
            headers=HEADERS,
            label="Requests being recorded",
            interactive=False,
            wrap=True,
            column_widths=WIDTHS,
            max_height=420,
        )
        tick, before = carried(TICK), gr.State(None)

    async def look(value: str, shown: list | None) -> tuple:
        try:
            found = await asyncio.to_thread(folder.requests)
        except Refusal as error:
            return f"{ABOUT}\n\n{escaped(str(error))}", gr.skip(), gr.skip()
        table = [cells(one) for one in found]
        if table == shown:
            return gr.skip(), gr.skip(), gr.skip()
        return ABOUT if table else f"{ABOUT}\n\n{EMPTY}", table, table

    def follow(value: str, row: list | None) -> dict:
        """Follows the request of a row, or the newest."""
        if not value:
            raise Refusal(NOT_YET)
        seen = read(Seen, parsed(value.encode(errors="replace")))
        found = folder.requests()
        one = next(
            (one for one in found if row is None or [one.began, one.request] == [row[0], row[-1]]), None
        )
        if one is None:
            raise Refusal(EMPTY if row is None else "This request is no longer in the folder.")
        result = follow_file(runs, folder.file(one.name), seen.session)
        said = f"{'Following' if result.get('following') else 'Opened'} request {one.request} from vLLM."
        return {**result, "file": one.request, "says": said, "record": True}

    async def answered(value: str, row: list | None) -> tuple[str, str]:
        try:
            return json.dumps(await asyncio.to_thread(follow, value, row)), ""
        except Refusal as error:
            sentence = f"The request was not opened. {error}"
            return json.dumps({"error": sentence}), escaped(sentence)

    async def follow_row(value: str, picked: gr.SelectData) -> tuple[str, str]:
        return await answered(value, picked.row_value)

    async def follow_newest(value: str) -> tuple[str, str]:
        return await answered(value, None)

    tick.change(look, [tick, before], [about, rows, before], **UNTRACKED, api_visibility="private")
    for event, handler in ((rows.select, follow_row), (newest.click, follow_newest)):
        done = event(handler, tick, [answer, says], show_progress_on=says, api_visibility="private")
        done.success(None, answer, None, js=opened)


def cells(one: Recorded) -> list[str]:
    """The cells of a request's row, see HEADERS."""
    state = one.problem or ("running" if one.running else f"silent for {one.silent / 60:,.0f} min")
    if one.ended:
        state = f"ended: {one.ended}"
    return [
        one.began,
        f"{one.tokens:,}",
        f"{one.accepted:,} of {one.drafted:,}" if one.drafted else "",
        f"{one.steps:,}",
        state,
        one.request,
    ]
