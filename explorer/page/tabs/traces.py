"""The tab Traces: saves the run on the page or one lane of it, opens files, and makes a link of the settings.

The page's script (assets/web/page/traces.js) says what is on screen at a click and shows what was opened.
Knows runs and forms of files, nothing of what is in them.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import gradio as gr
from pydantic import Field

from decoders import memory_options
from decoders.trace.trace import Trace
from explorer.export import run_file
from explorer.export.foreign_traces import declarations
from explorer.page.qr_code import svg
from explorer.page.save_and_open import picture_name, save_file
from explorer.page.tabs import FETCH, UNTRACKED, imported, on_screen
from explorer.page.tabs.experiments import escaped
from explorer.page.uploads import Uploaded
from explorer.page_requests import Save, Session, Shown, View
from explorer.runs.run_state import Run
from explorer.runs.scheduler import GONE, Runs
from explorer.runs.validation import MAX_LANES
from explorer.schema import Asked, Malformed, Name, parsed, read
from visualizers.registry import titles

READING = "Reading the run on the page …"  # until the page has told which it is
NOTHING = "Nothing has been decoded yet: press Run in the tab Decode."
SCAN = "Opens and runs this set-up on every device that can reach this address."
KEPT = (
    "The app no longer has this run. What this page has of it can still be saved: Save run, and Save trace "
    "for one lane."
)
SAVED = "Saved to your browser's downloads folder."
AS_SHOWN = "as shown"  # the view of a lane that is on screen
SHOWN = ("As shown", AS_SHOWN)
OPENED = "(text) => ExplorerPage.app.traces.opened(JSON.parse(text))"
WHOLE = {
    "page": (
        "Save page",
        "One HTML file that replays the run from disk: slider, hover, inspector, and the lesson that is "
        "open; no server, no network.",
    ),
    "run": (
        "Save run",
        "All lanes and their settings as data (.json.gz), to open here again or to read with a program.",
    ),
    "costs": ("Save costs", "The cost table (.csv), one row per lane."),
}
OF_LANE = {
    "trace": "Save trace",
    "page": "Save lane's page",
    "costs": "Save lane's costs",
    "drafted": "Save drafted tokens",
}
PICTURES = {"graph": "Save graph", "figure": "Save figure", "slide": "Save slide (16:9)"}
FILES = [".json", ".gz", ".html", ".htm", ".txt", ".prom"]  # that can be opened
GRAPHS = ["tokens", "drafts", "beams", "search", "lattice", "walk", "attention", "dependencies", "notes"]
ENDINGS = [("GraphML", "graphml"), ("GEXF", "gexf"), ("DOT", "dot"), ("JSON", "json")]


class Seen(Shown):
    """A lane on screen and the view that it shows."""

    view: View


class Wish(Asked):
    """What the page says at a click: the run on screen, its lanes, the page's theme, and the lesson that is
    open.
    """

    session: Session
    run: Name
    look: Literal["light", "dark"]
    lanes: Annotated[list[Seen], Field(max_length=MAX_LANES)]
    lesson: Name | None = None


class Visit(Asked):
    """What the page says when it has uploaded a file that it wants to be opened."""

    session: Session
    file: Uploaded
    look: Literal["light", "dark"] = "light"


@dataclass(frozen=True)
class Choice:
    """The components by which a file of a lane is chosen."""

    lane: gr.Dropdown
    view: gr.Dropdown
    kind: gr.Dropdown
    ending: gr.Dropdown


@dataclass(frozen=True)
class Dropped:
    """What is on the page whichever tab is open, unseen: the button to which the page's script gives files,
    and where the answer arrives.
    """

    button: gr.UploadButton
    answer: gr.HTML


def dropped() -> Dropped:
    """To be called outside of the tabs: Gradio makes what is in them only when they are opened."""
    button = gr.UploadButton("Dropped file", visible="hidden", elem_id="explorer-dropped")
    return Dropped(button, gr.HTML("", html_template="<i></i>", visible="hidden"))


def build(runs: Runs, screen: gr.HTML, dropped: Dropped) -> None:
    """Declares what is in the tab. `screen`: the component that says which run is on screen."""
    with gr.Column(elem_classes=[on_screen.follows("traces"), "traces"]):
        says = gr.Markdown(elem_id="traces-says")
        gr.Markdown("## Save")
        about = gr.Markdown(READING)
        buttons = []
        with gr.Row():
            for form, (label, text) in WHOLE.items():
                with gr.Column(min_width=220):
                    buttons.append((form, button(label)))
                    gr.Markdown(text, elem_classes="says")
        gr.Markdown("### One lane")
        with gr.Row():
            choice = choices()
        with gr.Row():
            for form, label in OF_LANE.items():
                buttons.append((f"{form} of lane", button(label)))
        with gr.Row():
            for form, label in PICTURES.items():
                buttons.append((f"{form} of lane", button(label)))
            show = gr.Button("Show figure", size="md", min_width=180)
        with gr.Column(visible=False) as pictures:
            plot = gr.Plot(show_label=False, container=False, elem_id="traces-figure")
            words = gr.Markdown(elem_classes="unseen")  # the figure shows the same sentence
            with gr.Row():
                for kind in ("PNG", "SVG"):
                    picture = gr.Button(f"Save as {kind}", size="md", scale=0, min_width=160)
                    picture.click(None, js=f"() => ExplorerPage.app.traces.picture({kind.lower()!r})")
        for form, one in buttons:
            saving(runs, form, one, screen, choice, says)
        show.click(
            figure_shown(runs),
            [screen, choice.lane, choice.view],
            [pictures, plot, words, says],
            js=asked("figure of lane"),
            api_visibility="private",
        )
        opening(runs, screen, dropped, says)
        sharing(says)
    ready = [*(one for _, one in buttons), show]
    gr.on(
        [screen.change, choice.lane.change],
        followed(runs, len(ready)),
        [screen, choice.lane],
        [about, choice.lane, choice.view, *ready],
        **UNTRACKED,
        api_visibility="private",
    )


def button(label: str) -> gr.DownloadButton:
    """A button that makes a file and hands it to the browser. It can be pressed at once: what is on screen is
    read at the click.
    """
    return gr.DownloadButton(label, size="md", min_width=180)


def choices() -> Choice:
    """What can be chosen of a lane; of lanes and views nothing until it is known which there are."""
    lanes = [(f"Lane {number}", number) for number in range(1, MAX_LANES + 1)]
    views = [SHOWN, *((title, name) for name, title in titles().items())]
    return Choice(
        gr.Dropdown(lanes, value=1, label="Lane", min_width=180, interactive=False),
        gr.Dropdown(views, value=AS_SHOWN, label="View of figures", min_width=180, interactive=False),
        gr.Dropdown(GRAPHS, value=GRAPHS[0], label="Graph", min_width=120),
        gr.Dropdown(ENDINGS, value=ENDINGS[0][1], label="Format of graphs", min_width=120),
    )


def asked(form: str) -> str:
    """Puts what is on screen at a click in the place of the first input; the others stay."""
    return f"(_, ...rest) => ExplorerPage.app.traces.wish({json.dumps(form)}, rest)"


# ---- saving ------------------------------------------------------------------------------------------------


def saving(
    runs: Runs, form: str, one: gr.DownloadButton, screen: gr.HTML, choice: Choice, says: gr.Markdown
) -> None:
    """What a click on a button that saves does: the file is made, and the browser fetches it."""

    async def save(wish: str, lane: int, view: str, kind: str, ending: str) -> tuple[str | None, str]:
        def made() -> str:
            run, request = wanted(runs, form, wish, lane, view)
            file = save_file(runs, run, request.model_copy(update={"kind": kind, "ending": ending}))
            return laid(one, file.name, file.data)

        try:
            return await asyncio.to_thread(made), SAVED
        except ValueError as error:
            return None, escaped(str(error))

    done = one.click(
        save,
        [screen, choice.lane, choice.view, choice.kind, choice.ending],
        [one, says],
        js=asked(form),
        show_progress_on=says,
        api_visibility="private",
    )
    done.success(None, one, one, js=FETCH)


def wanted(runs: Runs, form: str, wish: str, lane: int | None, view: str | None) -> tuple[Run, Save]:
    """What was clicked, as a run and a request. Raises ValueError with one sentence."""
    asked = read(Wish, parsed(wish.encode(errors="replace")))
    if not runs.belongs(asked.run, asked.session):
        raise ValueError(GONE)
    run, (form, of_lane) = runs.find(asked.run), (form.removesuffix(" of lane"), form.endswith(" of lane"))
    seen = next((one for one in asked.lanes if one.number == lane), None) if of_lane else None
    if of_lane and (seen is None or seen.lane >= len(run.records)):
        raise ValueError(f"Lane {lane} has not been decoded yet; choose another, or press Run.")
    views: list[str | None] = [None] * len(run.records)
    for one in asked.lanes:
        if one.lane < len(views):
            views[one.lane] = one.view
    if seen and form in ("figure", "slide") and view not in (None, AS_SHOWN):
        if view not in views_of(run.records[seen.lane].trace):
            raise ValueError(f"Lane {lane} has no view {titles()[view]}; choose another.")
        views[seen.lane] = view
    of_seen = {"lane": seen.lane, "step": seen.shown} if seen else {}
    return run, Save(run=asked.run, form=form, look=asked.look, views=views, lesson=asked.lesson, **of_seen)


def laid(component: gr.components.Component, name: str, data: bytes) -> str:
    """Puts a file where Gradio serves it from, in a folder of a secret name; the path."""
    folder = Path(component.GRADIO_CACHE) / secrets.token_hex(16)
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    return str(folder / name)


def figure_shown(runs: Runs) -> Callable:
    """The function that draws a view of a lane as a figure, with its caption."""

    async def draw(wish: str, lane: int, view: str) -> tuple:
        def drawn() -> tuple:
            from visualizers.figures import caption  # only where one is asked for: plotly takes its time

            run, request = wanted(runs, "figure of lane", wish, lane, view)
            trace = runs.snapshot(run)[request.lane]
            shows = request.views[request.lane]
            figure = trace.figure(shows, min(request.step, len(trace.steps)), request.look)
            words = caption(figure)
            # What a picture of it is called, see assets/web/page/traces.js.
            name = picture_name(run, trace, request.lane, shows)
            figure.update_layout(meta={**(figure.layout.meta or {}), "file": name})
            return gr.Column(visible=True), figure, escaped(words), ""

        try:
            return await asyncio.to_thread(drawn)
        except ValueError as error:
            return gr.skip(), gr.skip(), gr.skip(), escaped(str(error))

    return draw


def followed(runs: Runs, buttons: int) -> Callable:
    """The function that says what can be saved of the run on screen, and which views a lane has."""

    async def follow(value: str, number: int | None) -> list:
        try:
            seen = on_screen.screen(runs, value)
        except Malformed:  # no page says so
            return [gr.skip()] * (3 + buttons)
        except ValueError:
            return [KEPT, gr.skip(), gr.skip(), *[gr.update(interactive=True)] * buttons]
        lanes = {lane.number: lane for lane in seen.lanes} if seen else {}
        number = number if number in lanes else min(lanes, default=1)
        named = [(lane.title, lane.number) for lane in lanes.values()] or [("Lane 1", 1)]
        views = views_of(lanes[number].record.trace) if lanes else []
        return [
            sentence(seen),
            gr.update(choices=named, value=number, interactive=bool(lanes)),
            gr.update(
                choices=[SHOWN, *((titles()[view], view) for view in views)],
                value=AS_SHOWN,
                interactive=bool(lanes),
            ),
            *(gr.update(interactive=bool(lanes)) for _ in range(buttons)),
        ]

    return follow


def views_of(trace: Trace) -> list[str]:
    """The names of the views that a lane has."""
    return [*declarations([trace])[trace.strategy]["views"], *memory_options.views(trace.parameters)]


def sentence(seen: on_screen.Screen | None) -> str:
    """What can be saved of the run as it stands."""
    if seen is None or not seen.lanes:
        return NOTHING
    which = "The run on the page:" if seen.run.session else "The stored run:"
    many = "1 lane" if len(seen.lanes) == 1 else f"{len(seen.lanes)} lanes"
    going = " It is still running: what is saved is what exists so far."
    return f"{which} {many}.{going if seen.run.state in ('running', 'paused') else ''}"


# ---- opening and sharing -----------------------------------------------------------------------------------


def opening(runs: Runs, screen: gr.HTML, dropped: Dropped, says: gr.Markdown) -> None:
    """A file is uploaded, read, and shown as a run of the page's own."""
    gr.Markdown(
        "## Open\nA trace, a run, a saved page, a server's JSON answer with log-probabilities, or "
        "vLLM's counts of its drafts (the text of /metrics, or JSON): drop it on this page, or choose it."
    )
    with gr.Row():
        chosen = gr.UploadButton("Open a file", size="md", file_types=FILES, scale=0, min_width=160)
    card = imported.card()

    async def open_file(_: None, visit: str) -> dict:
        def opened() -> dict:
            asked = read(Visit, parsed(visit.encode(errors="replace")))
            name, data = asked.file.name, asked.file.take()
            try:
                counts = run_file.counts(data)
                result = {"counts": True} if counts else open_file(runs, data, asked.session)
            except ValueError as error:
                raise ValueError(f"{name} was not opened. {error}") from error
            answer = {dropped.answer: json.dumps({**result, "file": name}), says: ""}
            return answer | (card.shows(counts, name, asked.look) if counts else card.hides())

        try:
            return await asyncio.to_thread(opened)
        except ValueError as error:
            return {dropped.answer: json.dumps({"error": str(error)}), says: escaped(str(error))}

    for one in (chosen, dropped.button):
        done = one.upload(
            open_file,
            [one, screen],
            [dropped.answer, says, *card.parts],
            js="(file) => [null, ExplorerPage.app.traces.visit(file)]",
            show_progress_on=says,
            api_visibility="private",
        )
        done.success(None, dropped.answer, None, js=OPENED)


def sharing(says: gr.Markdown) -> None:
    """A link of the settings, made by the page: nothing of it is sent anywhere."""
    gr.Markdown(
        "## Share\nA link carries the prompt, the lanes with their parameters and seeds, and the names of "
        "the models. It holds no trace and runs nothing by itself; the QR code below it runs the set-up."
    )
    with gr.Row():
        make = gr.Button("Copy link", size="md", scale=0, min_width=160)
        # Not with Gradio's own button to copy: it takes the field's label, and leaves the field without one.
        link = gr.Textbox(label="Link", interactive=True, max_lines=1)
    code = gr.HTML(visible=False, elem_id="traces-qr")
    made = make.click(None, None, [link, says], js="() => ExplorerPage.app.traces.link()")
    made.then(scanned, link, code, api_visibility="private")


def scanned(link: str | None) -> dict:
    """The QR code of a link, or why there is none."""
    try:
        return gr.update(value=f"{svg(link or '')}<p>{SCAN}</p>", visible=bool(link))
    except ValueError as error:
        return gr.update(value=str(error), visible=True)
