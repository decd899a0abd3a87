"""The tab Traces: saves the run on the page or one of its lanes, opens files, and makes a link of the set-up.

The page's script (assets/web/page/traces.js) reports what is on screen at each click and shows opened files.
"""

import asyncio
import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import gradio as gr
from pydantic import Field

from decoders.refusal import Refusal
from decoders.view_names import current
from decoders.watch.vllm.folder import Folder
from explorer.export import opened_files
from explorer.export.frames import PRINT_WIDTHS
from explorer.page.qr_code import only_here, svg
from explorer.page.save_and_open import picture_name, save_file, show_run
from explorer.page.tabs import FETCH, UNTRACKED, following, imported, on_screen, records
from explorer.page.tabs.experiments import escaped
from explorer.page.uploads import LOST, NO_ROOM, Uploaded
from explorer.page_requests import Save, Session, View
from explorer.runs.run_state import Run
from explorer.runs.scheduler import GONE, Runs
from explorer.runs.validation import MAX_LANES
from explorer.schema import Asked, Malformed, Name, parsed, read
from visualizers.registry import titles

NOTHING = "Nothing has been decoded yet: press Run in the tab Decode."
SCAN = "Opens and runs this set-up on every device that can reach this address."
ALONE = (
    "No other device can open this code: its address points to the device that opens it. Start the app with "
    "--host 0.0.0.0 for other devices of your network, or with --share."
)
KEPT = (
    "The app no longer has this run. The part of it that this page holds can still be saved as Data, of the "
    "whole run or of one lane."
)
SAVED = "Saved to your browser's downloads folder."
AS_SHOWN = "as shown"  # the view that a lane shows on screen
SHOWN = ("As shown", AS_SHOWN)
OPENED = "(text) => ExplorerPage.app.traces.opened(JSON.parse(text))"
WHOLE = 0  # in place of the number of a lane: the whole run


@dataclass(frozen=True)
class Form:
    """A kind of file: what the list calls it, what it holds, and which choices it has besides."""

    label: str
    says: str
    options: tuple[str, ...] = ()  # names of fields of `Choice`


FORMS = {
    "page": Form(
        "Page (HTML)",
        "One file that replays the run without server or network, with slider, hover, inspector, the code "
        "that ran, and the open lesson.",
    ),
    "data": Form(
        "Data (JSON)",
        "Every candidate, verdict and forward, with the settings, compressed: to be opened here again, or "
        "read by a program.",
    ),
    "costs": Form("Costs (CSV)", "The cost table, one row per lane."),
    "drafted": Form(
        "Drafted tokens (CSV)", "One row per drafted token, with p, q, u and the cause of a rejection."
    ),
    "graph": Form(
        "Graph", "A NetworkX graph of the lane, for Gephi, Graphviz or Python.", ("kind", "ending")
    ),
    "figure": Form(
        "Figure (HTML)", "A view up to the step on show as a Plotly figure: zoom, hover, camera.", ("view",)
    ),
    "slide": Form(
        "Slide (PNG, 16:9)", "A view of the run up to the step on show, broken into lines.", ("view",)
    ),
    "print": Form(
        "Figure for print (SVG)",
        "A view as wide as a paper's column, in letters of at least 8 pt, with its caption.",
        ("view", "width"),
    ),
}
OF_RUN = ("page", "data", "costs")  # what the whole run can be saved as; the others hold one lane
FIGURES = ("figure", "slide", "print")  # forms that show a view
FILES = [".json", ".jsonl", ".ndjson", ".gz", ".html", ".htm", ".txt", ".log", ".prom"]  # that can be opened
GRAPHS = ["tokens", "drafts", "beams", "search", "lattice", "walk", "attention", "dependencies", "notes"]
ENDINGS = [("GraphML", "graphml"), ("GEXF", "gexf"), ("DOT", "dot"), ("JSON", "json")]


PRINTED = [(f"{millimetres} mm, {name}", millimetres) for millimetres, name in PRINT_WIDTHS.items()]


class Chosen(Asked):
    """What is chosen in the tab: the lane, none for the whole run, the kind of file, and the view."""

    lane: int | None = None
    form: Literal["page", "data", "costs", "drafted", "graph", "figure", "slide", "print"] = "page"
    view: Name | None = None


class Click(on_screen.OnScreen):
    """What the page reports at a click: the run on screen, its lanes, the views of all lanes of the run, the
    page's theme, the open lesson, and what is chosen. The inputs for lane, form and view are empty, since
    Gradio refuses a choice that is gone.
    """

    views: Annotated[list[View | None], Field(max_length=MAX_LANES)]
    look: Literal["light", "dark"]
    lesson: Name | None = None
    chosen: Chosen = Chosen()


class Upload(Asked):
    """What the page reports when it has uploaded a file to be opened."""

    session: Session
    file: Uploaded
    look: Literal["light", "dark"] = "light"


@dataclass(frozen=True)
class Choice:
    """The components in which a person chooses what is saved, and how."""

    of: gr.Dropdown
    form: gr.Radio
    view: gr.Dropdown
    kind: gr.Dropdown
    ending: gr.Dropdown
    width: gr.Dropdown


@dataclass(frozen=True)
class Dropped:
    """Hidden components that exist whichever tab is open: the upload button to which the page's script passes
    dropped files, and the component that receives the answer.
    """

    button: gr.UploadButton
    answer: gr.HTML


def dropped() -> Dropped:
    """Declares the components of `Dropped`. Call it outside the tabs, whose contents Gradio renders only when
    they are opened.
    """
    button = gr.UploadButton("Dropped file", visible="hidden", elem_id="explorer-dropped")
    return Dropped(button, gr.HTML("", html_template="<i></i>", visible="hidden"))


def build(runs: Runs, screen: gr.HTML, dropped: Dropped, follow: Folder | None = None) -> None:
    """Declares the contents of the tab. `screen`: the component that says which run is on screen; `follow`:
    the folder of requests that vLLM records, if the app was given one.
    """
    with gr.Column(elem_classes=[on_screen.follows("traces"), "traces"]):
        says = gr.Markdown(elem_id="traces-says")
        if follow is not None:
            following.build(runs, follow, dropped.answer, says, OPENED)
        gr.Markdown("## Save")
        about = gr.Markdown(on_screen.READING)
        choice = choices()
        form_says = gr.Markdown(FORMS["page"].says, elem_classes="says")
        with gr.Row():
            save = gr.DownloadButton("Save", variant="primary", size="md", scale=0, min_width=160)
            show = gr.Button("Show figure", size="md", scale=0, min_width=160, visible=False)
        with gr.Column(visible=False) as pictures:
            plot = gr.Plot(show_label=False, container=False, elem_id="traces-figure")
            words = gr.Markdown(elem_classes="unseen")  # for screen readers: the figure shows this sentence
            with gr.Row():
                for kind in ("PNG", "SVG"):
                    picture = gr.Button(f"Save as {kind}", size="md", scale=0, min_width=160)
                    picture.click(None, js=f"() => ExplorerPage.app.traces.picture({kind.lower()!r})")
        save_on_click(runs, save, screen, choice, says)
        show.click(
            figure_drawer(runs),
            [screen, choice.of, choice.form, choice.view],
            [pictures, plot, words, says],
            js=REPORT,
            api_visibility="private",
        )
        build_open(runs, screen, dropped, says)
        build_share(says)
    options = [choice.view, choice.kind, choice.ending, choice.width]
    listeners = (
        (screen.change, True, False),
        (choice.of.input, False, True),
        (choice.form.input, False, False),
    )
    for event, of_screen, lane_leads in listeners:
        gr.on(
            event,
            run_follower(runs, lane_leads, of_screen),
            [screen, choice.of, choice.form],
            [about, choice.of, choice.form, form_says, *options, save, show],
            **UNTRACKED,
            trigger_mode="always_last",
            api_visibility="private",
        )


def choices() -> Choice:
    """Declares the choices. Which views there are is not known yet: what is on screen is read at a click."""
    lanes = [("The whole run", WHOLE), *((f"Lane {number}", number) for number in range(1, MAX_LANES + 1))]
    views = [SHOWN, *((title, name) for name, title in titles().items())]
    with gr.Row():
        of = gr.Dropdown(lanes, value=WHOLE, label="Of", scale=1, min_width=240)
        forms = [(form.label, name) for name, form in FORMS.items()]
        form = gr.Radio(forms, value="page", label="As", scale=4, min_width=320, elem_id="traces-form")
    with gr.Row():
        return Choice(
            of,
            form,
            gr.Dropdown(views, value=AS_SHOWN, label="View", min_width=240, visible=False),
            gr.Dropdown(GRAPHS, value=GRAPHS[0], label="Graph", min_width=240, visible=False),
            gr.Dropdown(ENDINGS, value=ENDINGS[0][1], label="Format", min_width=160, visible=False),
            gr.Dropdown(PRINTED, value=PRINTED[0][1], label="Width", min_width=200, visible=False),
        )


# Replaces the first input of an event by what is on screen at the click, and what was chosen in it.
REPORT = "(_, ...chosen) => ExplorerPage.app.traces.wish(...chosen)"


# ---- saving ------------------------------------------------------------------------------------------------


def save_on_click(
    runs: Runs, one: gr.DownloadButton, screen: gr.HTML, choice: Choice, says: gr.Markdown
) -> None:
    """Makes the button save: a click makes the file, and the browser then downloads it."""

    async def save(
        click: str, of: None, form: None, view: None, kind: str, ending: str, width: float
    ) -> tuple[str | None, str]:
        def make() -> str:
            run, request = save_request(runs, click)
            asked = {"kind": kind, "ending": ending, "width_mm": width}
            file = save_file(runs, run, request.model_copy(update=asked))
            return write_served(one, file.name, file.data)

        try:
            return await asyncio.to_thread(make), SAVED
        except Refusal as error:
            return None, escaped(str(error))

    done = one.click(
        save,
        [screen, choice.of, choice.form, choice.view, choice.kind, choice.ending, choice.width],
        [one, says],
        js=REPORT,
        show_progress_on=says,
        api_visibility="private",
    )
    done.success(None, one, one, js=FETCH)


def save_request(runs: Runs, click: str) -> tuple[Run, Save]:
    """The run and the request that a click asks for. Raises Refusal with one sentence."""
    asked = read(Click, parsed(click.encode(errors="replace")))
    lane, form, view = asked.chosen.lane, asked.chosen.form, current(asked.chosen.view or AS_SHOWN)
    if not runs.belongs(asked.run, asked.session):
        raise Refusal(GONE)
    run = runs.find(asked.run)
    if not lane and form not in OF_RUN:
        raise Refusal("Choose a lane: this kind of file holds one.")
    if form == "data":
        form = "trace" if lane else "run"
    seen = next((one for one in asked.lanes if one.number == lane), None) if lane else None
    if lane and (seen is None or seen.lane >= len(run.records)):
        raise Refusal(f"Lane {lane} has not been decoded yet; choose another, or press Run.")
    count = len(run.records)
    views = [*asked.views, *[None] * count][:count]
    if seen and form in FIGURES and view != AS_SHOWN:
        if view not in run.records[seen.lane].views():
            raise Refusal(f"Lane {lane} has no view {titles().get(view, view)}; choose another.")
        views[seen.lane] = view
    of_seen = {"lane": seen.lane, "step": seen.shown} if seen else {}
    return run, Save(run=asked.run, form=form, look=asked.look, views=views, lesson=asked.lesson, **of_seen)


def write_served(component: gr.components.Component, name: str, data: bytes) -> str:
    """Writes a file where Gradio can serve it, in a folder with a secret name; returns the path. Raises
    Refusal with one sentence if the app's disk is full.
    """
    folder = Path(component.GRADIO_CACHE) / secrets.token_hex(16)
    try:
        folder.mkdir(parents=True)
        (folder / name).write_bytes(data)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Refusal(NO_ROOM) from error
    return str(folder / name)


def figure_drawer(runs: Runs) -> Callable:
    """Returns the event function that draws a view of a lane as a figure with its caption."""

    async def draw(click: str, of: None, form: None, view: None) -> tuple:
        def make() -> tuple:
            from visualizers.figures import caption  # on demand: plotly is slow to import

            run, request = save_request(runs, click)
            trace = runs.snapshot(run)[request.lane]
            shown = request.views[request.lane]
            figure = trace.figure(shown, min(request.step, len(trace.steps)), request.look)
            words = caption(figure)
            # The file name of a saved picture, read by assets/web/page/traces.js.
            name = picture_name(run, trace, request.lane, shown)
            figure.update_layout(meta={**(figure.layout.meta or {}), "file": name})
            return gr.Column(visible=True), figure, escaped(words), ""

        try:
            return await asyncio.to_thread(make)
        except Refusal as error:
            return gr.skip(), gr.skip(), gr.skip(), escaped(str(error))

    return draw


def run_follower(runs: Runs, lane_leads: bool, of_screen: bool = True) -> Callable:
    """Returns the event function that updates the tab when the run on screen or a choice changes: what can be
    saved, and which choices the kind of file has. Where the whole run is chosen and a
    kind of file that holds one lane, `lane_leads` says which of the two stays. Only an event `of_screen` says
    whether there is anything to save: a choice may be quicker than the page's first word of its run.
    """

    async def follow(value: str, number: int | None, form: str) -> list:
        try:
            seen = on_screen.screen(runs, value)
        except Malformed:  # not sent by our page
            return [gr.skip()] * 10
        except Refusal:
            return [KEPT, *[gr.skip()] * 7, gr.update(interactive=True), gr.skip()]
        asked = number, form
        lanes = {lane.number: lane for lane in seen.lanes} if seen else {}
        if number not in lanes and (seen or of_screen):
            number = WHOLE
        if not number and form not in OF_RUN:
            number, form = (WHOLE, "page") if lane_leads else (first_for(form, lanes), form)
        views = lanes[number].record.views() if number in lanes else []
        named_views = [SHOWN, *((titles()[view], view) for view in views)]
        options = FORMS[form].options
        return [
            sentence(seen) if of_screen else gr.skip(),
            update_of(asked[0], number),  # its choices stay: Gradio fails where a chosen one goes
            update_of(asked[1], form),
            FORMS[form].says,
            gr.update(choices=named_views, value=AS_SHOWN, visible="view" in options),
            *(gr.update(visible=name in options) for name in ("kind", "ending", "width")),
            gr.update(interactive=bool(lanes)) if of_screen else gr.skip(),
            gr.update(visible=form in FIGURES),
        ]

    return follow


def first_for(form: str, lanes: dict[int, on_screen.Lane]) -> int | None:
    """The lane that a kind of file is taken of where none was chosen: the first; for drafted tokens, the
    first that has drafted.
    """
    drafting = [number for number, lane in lanes.items() if lane.record.trace.costs.proposed]
    return min((form == "drafted" and drafting) or lanes, default=WHOLE)


def update_of(before: Any, now: Any) -> dict:
    """The update of a choice: none where it stays, since a person may have chosen again meanwhile."""
    return gr.skip() if now == before else gr.update(value=now)


def sentence(seen: on_screen.Screen | None) -> str:
    """Says what can be saved of the run at present."""
    if seen is None or not seen.lanes:
        return NOTHING
    which = "The run on the page:" if seen.run.session else "The stored run:"
    many = "1 lane" if len(seen.lanes) == 1 else f"{len(seen.lanes)} lanes"
    going = " It is still running: a file holds what has been decoded so far."
    return f"{which} {many}.{going if seen.run.state in ('running', 'paused') else ''}"


# ---- opening and sharing -----------------------------------------------------------------------------------


def build_open(runs: Runs, screen: gr.HTML, dropped: Dropped, says: gr.Markdown) -> None:
    """Declares the section Open: a file is uploaded, read, and shown as a run of this page."""
    gr.Markdown(
        "## Open\nDrop a file on this page, several, or a folder, or choose one: a trace, a run or a saved "
        "page; an answer of llama.cpp, SGLang, Ollama or any server that answers as OpenAI does; records of "
        "lm-evaluation-harness, prime-rl, slime or verl; metrics or a log of a server that drafts. Each is "
        "checked before it is drawn."
    )
    with gr.Row():
        chosen = gr.UploadButton("Open a file", size="md", file_types=FILES, scale=0, min_width=160)
    card, listed = imported.card(), records.records_table()

    async def open_upload(_: None, upload: str) -> dict:
        def opened() -> dict:
            asked = read(Upload, parsed(upload.encode(errors="replace")))
            name, data = asked.file.name, asked.file.take()
            try:
                found = opened_files.opened(data, name)
                lane = found.run or (found.lane(1) if len(found.records) == 1 and not found.counts else None)
                result = show_run(runs, *lane, asked.session) if lane else {"listed": True}
            except Refusal as error:
                raise Refusal(f"{name} was not opened. {error}") from error
            shown = {dropped.answer: json.dumps({**result, "file": name}), says: ""}
            counts, many = next(iter(found.counts), None), not lane and found.records
            shown |= card.updates(counts[1], counts[0], asked.look) if counts else card.updates_to_hide()
            return shown | (
                listed.updates(found, data, name, asked.session) if many else listed.updates_to_hide()
            )

        try:
            return await asyncio.to_thread(opened)
        except Refusal as error:
            return {dropped.answer: json.dumps({"error": str(error)}), says: escaped(str(error))}

    for one in (chosen, dropped.button):
        done = one.upload(
            open_upload,
            [one, screen],
            [dropped.answer, says, *card.parts, *listed.parts],
            js="(file) => [null, ExplorerPage.app.traces.visit(file)]",
            show_progress_on=says,
            api_visibility="private",
        )
        done.success(None, dropped.answer, None, js=OPENED)

    async def open_record(kept: tuple | None, event: gr.SelectData) -> tuple[str, str]:
        def chosen() -> tuple[str, str]:
            session, file, _ = kept
            number = int(event.row_value[0])
            result = show_run(runs, *records.file_of(kept).lane(number), session)
            return json.dumps({**result, "file": f"record {number} of {file}", "record": number}), ""

        try:
            return await asyncio.to_thread(chosen) if kept else (gr.skip(), LOST)
        except Refusal as error:
            return json.dumps({"error": str(error)}), escaped(str(error))

    picked = listed.rows.select(
        open_record, listed.kept, [dropped.answer, says], show_progress_on=says, api_visibility="private"
    )
    picked.success(None, dropped.answer, None, js=OPENED)


def build_share(says: gr.Markdown) -> None:
    """Declares the section Share. The page makes the link; nothing is sent anywhere."""
    gr.Markdown(
        "## Share\nA link carries the prompt, the lanes with their parameters and seeds, and the names of "
        "the models. It contains no trace and runs nothing by itself; the QR code below it runs the set-up."
    )
    with gr.Row():
        make = gr.Button("Copy link", size="md", scale=0, min_width=160)
        # Without Gradio's own copy button, which takes the field's label and leaves the field without one.
        link = gr.Textbox(label="Link", interactive=True, max_lines=1)
    code = gr.HTML(visible=False, elem_id="traces-qr")
    made = make.click(None, None, [link, says], js="() => ExplorerPage.app.traces.link()")
    made.then(show_code, link, code, api_visibility="private")


def show_code(link: str | None) -> dict:
    """The update that shows the QR code of a link, or why there is none."""
    try:
        says = ALONE if only_here(link or "") else SCAN
        return gr.update(value=f"{svg(link or '')}<p>{says}</p>", visible=bool(link))
    except Refusal as error:
        return gr.update(value=str(error), visible=True)
