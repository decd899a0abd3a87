"""Microscope: what is wrong with a draft of the run's target, the examination of `explorer doctor`.

An examination is made in small slices, on the worker thread that decodes for everybody, and ends when its
page closes.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from typing import Any

import gradio as gr

from decoders.models.catalog import DRAFT
from decoders.refusal import Refusal
from explorer.page.tabs import FETCH, UNTRACKED
from explorer.page.tabs.acceptance import AT_ONCE, QUIET, advance, drafters, small_models, target_of
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.traces import write_served
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs

ABOUT = (
    "The draft is asked for the next token along texts with known answers and along texts of its target, and "
    "again as if it read its input in other ways. The result is one sentence with its evidence. The command "
    "`doctor` does the same for models, servers and recordings."
)
HEADERS = ["Text", "Asks for", "Tokens", "Target's p of the text", "Overlap", "Same first choice"]
WIDTHS = ["220px", "280px", "110px", "210px", "140px", "190px"]


def build(tab: gr.Tab, on_screen: gr.HTML, look: gr.HTML, runs: Runs, loader: Loader) -> None:
    """Declares the section."""
    gr.Markdown(f"## Draft doctor\n{ABOUT}", elem_id="draft-doctor")
    names = small_models()
    with gr.Row():
        draft = gr.Dropdown(
            names, value=DRAFT if DRAFT in names else names[0], label="Draft to examine", min_width=260
        )
        length = gr.Slider(0, 12, 0, step=1, label="Drafted per round (0: as it drafts)", min_width=220)
        start = gr.Button("Examine", variant="primary", size="md", scale=0, min_width=140)
        stop = gr.Button("Stop examining", size="md", scale=0, min_width=140, visible=False)
    says = gr.Markdown(elem_id="doctor-says")
    found, command = gr.State(None), gr.State(None)
    with gr.Column(visible=False) as body:
        save = gr.DownloadButton("Save examination (HTML)", size="md", scale=0, min_width=180)
        with gr.Row():
            places = {"by_text": captioned(), "along_long": captioned()}
        with gr.Row():
            places |= {"speeds": captioned()}
        table = gr.Dataframe(
            headers=HEADERS,
            label="Texts along which the draft was asked",
            interactive=False,
            wrap=True,
            column_widths=WIDTHS,
        )
    figures = [part for place in places.values() for part in place.parts]

    offer_drafts(tab, draft, loader)

    def buttons(examining: bool = False) -> dict:
        return {start: gr.Button(visible=not examining), stop: gr.Button(visible=examining)}

    def examination_drawn(examination: Any, theme: str) -> dict:
        if examination is None:
            return {part: gr.skip() for part in figures}
        shown = figures_of(examination, look_of(theme))
        return {
            part: update
            for name, place in places.items()
            for part, update in place.updates(shown[name]).items()
        }

    async def examine(
        value: str,
        theme: str,
        name: str | None,
        drafted: float | None,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - how Gradio hands one in
    ) -> AsyncIterator[dict]:
        pieces = None
        try:
            yield {says: "Loading the draft …"} | buttons(examining=True)
            pieces, target = await asyncio.to_thread(begin, runs, loader, value, name, drafted)
            last: Any = (0, 1)
            while isinstance(last, tuple):
                yield {says: f"{last[0]} of {last[1]} texts are read."}
                progress(last, desc="Examining", unit="texts")
                last = await asyncio.wrap_future(runs.on_worker(lambda: advance(pieces)))
            shown = await asyncio.to_thread(examination_drawn, last, theme)
            texts = {says: sentences(last), found: last, command: command_line(target, name, drafted)}
            from explorer.doctor.words import canary_rows

            texts |= {table: canary_rows(last), body: gr.Column(visible=True)}
            yield texts | shown | buttons()
        except Refusal as error:
            yield {says: escaped(str(error))} | buttons()
        finally:
            if pieces is not None:  # frees the KV slots of an unfinished lane, on the thread that owns them
                runs.on_worker(pieces.close)

    examining = start.click(
        examine,
        [on_screen, look, draft, length],
        [says, body, found, command, table, start, stop, *figures],
        show_progress_on=says,
        concurrency_limit=AT_ONCE,
        **QUIET,
    )
    stopped = [start, stop, says]
    stop.click(lambda: buttons() | {says: "Stopped."}, None, stopped, cancels=[examining], **QUIET)
    look.change(examination_drawn, [found, look], figures, **UNTRACKED, **QUIET)
    save_on_press(save, says, found, command)


def offer_drafts(tab: gr.Tab, draft: gr.Dropdown, loader: Loader) -> None:
    """Offers the strategies that draft by themselves too, once the tab is opened and the models are there."""

    async def drafts_offered() -> Any:
        await asyncio.to_thread(loader.done.wait)
        known = await asyncio.to_thread(drafters)
        draft.choices = [(name, name) for name in known]  # what events of all visitors may be sent
        return gr.Dropdown(draft.choices)

    tab.select(drafts_offered, None, draft, **UNTRACKED, **QUIET)


def figures_of(examination: Any, look: str) -> dict[str, Any]:
    """The Plotly figures of an examination, by the name of their place."""
    from visualizers.figures import doctor as charts  # on demand: plotly is slow to import

    return {
        "by_text": charts.by_text(examination.texts, look),
        "along_long": charts.along_long(examination.texts, look),
        "speeds": charts.speeds(examination.surface, look),
    }


def save_on_press(save: gr.DownloadButton, says: gr.Markdown, found: gr.State, command: gr.State) -> None:
    """Makes the file of an examination when its button is pressed."""

    async def examination_saved(examination: Any, said: str) -> str | None:
        from explorer.doctor.report_page import report_page

        if examination is None:
            return None
        page = await asyncio.to_thread(report_page, examination, said)
        return write_served(save, "doctor.html", page.encode())

    save.click(examination_saved, [found, command], save, show_progress_on=says, **QUIET).success(
        None, save, save, js=FETCH
    )


def begin(
    runs: Runs, loader: Loader, value: str, name: str | None, drafted: float | None
) -> tuple[Iterator, str]:
    """Prepares the examination: returns an iterator that makes it piece by piece, and its target's name.
    Raises Refusal with one sentence if it is impossible.
    """
    from explorer.acceptance.drafters import drafter
    from explorer.doctor.examining import Settings, in_pieces

    if not name or drafted is None or not 0 <= drafted <= 12:
        raise Refusal("Choose a draft, and a length from 0 to 12.")
    target = target_of(runs, loader, value)
    one = runs.on_worker(lambda: drafter(name, target, target.model.device.type)).result()
    return in_pieces(target, one, [], Settings(int(drafted) or None)), target.name


def command_line(target: str, name: str, drafted: float) -> str:
    """The command that makes the same examination."""
    length = f" --num-assistant-tokens {int(drafted)}" if drafted else ""
    return f"python -m explorer doctor --target {shlex.quote(target)} --draft {shlex.quote(name)}{length}"


def sentences(examination: Any) -> str:
    """The verdict in bold, the other sentences and the evidence as lists, as Markdown."""
    from explorer.doctor import words

    first, *rest = words.sentences(examination)
    lines = [f"**{escaped(first)}**", ""]
    quoted = [line for one in examination.findings for line in words.quoted(one, examination)]
    return "\n".join(lines + [f"- {escaped(line)}" for line in [*rest, *quoted]])
