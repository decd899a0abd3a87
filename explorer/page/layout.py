"""Builds the page: its tabs (explorer/page/tabs), the server functions that its scripts call, and its files.

The lanes are one gr.HTML that our own JavaScript fills. Its scripts and the data of the first picture are
part of the HTML itself, so that a stored trace is on screen before Gradio's own front end has started.
"""

import asyncio
import hashlib
import json
import time
from dataclasses import asdict
from functools import cache

import gradio as gr
from gradio import routes as gradio_routes
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from decoders.models.catalog import shipped
from decoders.refusal import Refusal
from decoders.registry import strategies
from decoders.watch.vllm.folder import Folder
from explorer import alive, experiments
from explorer.access import Access, Guard
from explorer.catalog import opening_lanes, recorded_runs
from explorer.export import fields
from explorer.export.bars import Around
from explorer.export.help_text import help_html
from explorer.export.page_data import page_data
from explorer.inspector import code_drawer
from explorer.inspector.card import card
from explorer.inspector.token_facts import inspect, inspect_cell
from explorer.lessons import lesson
from explorer.page import (
    bad_requests,
    branch,
    compare,
    constraint,
    endpoints,
    faults,
    find_strategy,
    lighter,
    links,
    qr_code,
    save_and_open,
    serve,
    stop_when,
)
from explorer.page.look import theme
from explorer.page.sessions import routes as session_routes
from explorer.page.sessions import validated
from explorer.page.shared_config import SharedConfig
from explorer.page.tabs import decode, drawn, microscope, on_screen, tab
from explorer.page.tabs import experiments as experiments_tab
from explorer.page.tabs import lenses as lenses_tab
from explorer.page.tabs import lessons as lessons_tab
from explorer.page.tabs import methods as methods_tab
from explorer.page.tabs import models as models_tab
from explorer.page.tabs import traces as traces_tab
from explorer.page.tabs.captioned import FETCH_PLOTLY, RUN_PLOTLY
from explorer.page.tabs.events import Picked, inputs
from explorer.page.uploads import MAX_FILE_BYTES
from explorer.page_requests import Call, Code, Control, Inspect, OfLane, Pull, Start
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import GONE, NoLane, Runs
from explorer.runs.validation import as_json, check
from explorer.tasks import sandbox

SMALL = "The small models here know children's stories and simple exercises: see Examples."
EXAMPLE = "example"  # the public name of the stored run
TIDY = (60, 600)  # seconds between two clean-ups of saved and uploaded files; age at which they are deleted
LOADING_WAIT = 20.0  # seconds for which explorer_hello waits before it answers "still loading"
# Tells our scripts which tab was selected.
ARRIVE = """() => ExplorerPage.app.arrive(
    document.querySelector("#explorer-tabs > .tab-wrapper [aria-selected=true]").dataset.tabId)"""
# Keeps the page's theme, "light" or "dark", as the value of the component that contains the theme switch.
THEME = """const tell = () => { props.value = ExplorerPage.app.theme; };
setTimeout(tell); ExplorerPage.app.on("theme", tell);"""


def first_data(
    runs: Runs, loader: Loader, help: str, tabs: list[tuple[str, str]], opening: list[dict] | None = None
) -> dict:
    """Returns the data with which the page starts: the stored run with its declarations, names and limits.

    `help` is the HTML of the help panel; `tabs` lists the id and title of each tab; `opening`: see `build`.
    """
    setup = recorded_runs.setup()
    if opening is None:
        run = runs.show(recorded_runs.traces(), run_id=EXAMPLE, asked=setup)
    else:
        run, setup = None, setup | {"lanes": opening}
    about = f"{serve.ABOUT} {SMALL}" if loader.choice.target in shipped() else serve.ABOUT
    used = {lane["strategy"] for lane in setup["lanes"]}
    declared = [one for one in setup["declarations"] if one["name"] in used]
    data = page_data(run, setup, declared, asdict(loader.choice), Around(help, tabs, about))
    fork = recorded_runs.first_rejection(data["example"]["answer"]["lanes"]) if run else None
    return data | {"gone": GONE, "fork": fork}


def version(known: bad_requests.Known) -> str:
    """A short hash of the page's scripts and of what they and Gradio's may call. Where it is another one, an
    open page and the app do not understand each other.
    """
    functions = {number: sorted(names) for number, names in known.components.items()}
    endpoints = {name: number for name, (number, _) in known.endpoints.items()}
    scripts = [gr.__version__, serve.address("page"), serve.address("player")]
    called = json.dumps([scripts, functions, endpoints, sorted(known.events)])
    return hashlib.sha256(called.encode()).hexdigest()[:12]


def build(
    runs: Runs,
    loader: Loader,
    access: Access | None = None,
    opening: list[dict] | None = None,
    follow: Folder | None = None,
) -> tuple[gr.Blocks, dict]:
    """Returns the Blocks and the keyword arguments for its `launch`.

    `access` says who may use the app; by default, only pages opened on this machine. `opening`: the lanes
    with which the page opens, nothing decoded in them; by default, those of the stored run, with it.
    `follow`: a folder of requests that vLLM records, to be listed in the tab Traces.
    """
    access = access or Access()
    declared = server_functions(runs, loader, opening is not None)
    functions = [validated(runs, function) for function in declared]
    gr.set_static_paths(experiments.FOLDER)  # served in place: Gradio's copies would be deleted after a while
    with gr.Blocks(title=serve.TITLE, analytics_enabled=False, fill_width=True, delete_cache=TIDY) as demo:
        look = drawn("top", THEME, value="light")
        screens = {name: on_screen.component(name) for name in ("compare", "microscope", "lenses", "traces")}
        dropped = traces_tab.dropped()
        experiment, token, paper = experiments_tab.named(), lenses_tab.token(), methods_tab.paper()
        with gr.Tabs(selected="decode", elem_id="explorer-tabs", overflow_behavior="wrap") as tabs:
            with tab("Decode"):
                home = decode.build(screens["compare"], look, runs, loader, functions)
            with tab("Microscope") as opened:
                microscope.build(opened, screens["microscope"], look, runs, loader, dropped.answer)
                opened.select(None, js=RUN_PLOTLY, api_visibility="private")
            with tab("Lenses") as opened:
                lenses_tab.build(screens["lenses"], look, token, runs, loader)
                opened.select(None, js=RUN_PLOTLY, api_visibility="private")
            with tab("Lessons"):
                lessons_tab.build()
            with tab("Methods") as opened:
                methods_tab.build(opened, loader, look, paper)
            with tab("Experiments") as opened:
                experiments_tab.build(opened, experiment, look)
            with tab("Traces"):
                traces_tab.build(runs, screens["traces"], dropped, follow)
        tabs.select(None, js=ARRIVE)
        demo.load(None, js=FETCH_PLOTLY, api_visibility="private")
        endpoints.declare(runs, loader)
    SharedConfig.install(demo)
    lighter.relieve_queue(demo)
    faults.tell(demo)
    gradio_routes.CustomCORSMiddleware = without_cors
    named = {fn.api_name: fn for fn in demo.fns.values() if fn.api_name in endpoints.INPUTS}
    events = [fn for fn in demo.fns.values() if fn.fn and fn.api_name not in named]
    known = bad_requests.Known(
        {home._id: frozenset(function.__name__ for function in functions)},
        {name: (fn._id, endpoints.INPUTS[name]) for name, fn in named.items()},
        {fn._id: inputs(fn) for fn in events},
        {fn._id: Picked for fn in events if fn.collects_event_data},
        lambda session: endpoints.has_messages(demo, session),
        lambda: endpoints.tools(demo),
    )
    help = help_html(True, access.token is not None, endpoints.speaks_mcp())
    first = first_data(runs, loader, help, [(tab.id, tab.label) for tab in tabs.children], opening)
    first |= {"started": alive.STARTED, "version": version(known), "guarded": access.token is not None}
    launch = {
        "app_kwargs": {
            "routes": [
                *serve.routes(),
                *alive.routes(first["version"]),
                *lessons_tab.routes(),
                *methods_tab.routes(),
                *session_routes(runs),
            ],
            "middleware": [
                Middleware(Guard, access=access),
                *bad_requests.middleware(known),
                *serve.middleware(first),
            ],
            "exception_handlers": bad_requests.HANDLERS,
        },
        "theme": theme(),
        "max_file_size": MAX_FILE_BYTES,
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "mcp_server": endpoints.speaks_mcp(),
        "quiet": True,
        "show_error": False,
        "enable_monitoring": False,
    }
    return demo, launch


def without_cors(app: ASGIApp, **_: object) -> ASGIApp:
    """In place of Gradio's layer that lets pages of other addresses read answers: this app has no such pages,
    and the layer would answer them before the guard sees them.
    """
    return app


@cache
def declared(names: tuple[str, ...]) -> dict:
    """The declarations of these strategies as a page reads them. Made once: every page asks for them when it
    is opened, and to make them takes 170 ms.
    """
    return fields.known(strategies()[name].declaration() for name in names)


def server_functions(runs: Runs, loader: Loader, opens: bool = False) -> list:
    """All functions that the page's scripts can call. `opens`: whether explorer_hello says with which lanes
    the page opens, once the models are there.

    Each takes a request of the model it is annotated with (see `sessions.validated`). It returns JSON text,
    since Gradio would walk through an object.
    """

    async def explorer_hello(request: Call) -> str:
        """Whether the models are loaded, all declarations once they are, and how programs are sandboxed."""
        code = asyncio.create_task(asyncio.to_thread(sandbox.protection))  # tried out while the models load
        until = time.monotonic() + LOADING_WAIT
        while loader.state == "loading" and time.monotonic() < until:
            await asyncio.sleep(0.05)
        hello = {"state": loader.state, "sentence": loader.sentence}
        hello["code"] = (await code).sentence
        if loader.state == "ready":
            hello |= declared(tuple(strategies()))
            hello["facts"] = {role: model.facts() for role, model in loader.models.items()}
            if opens:
                hello["opening"] = await asyncio.to_thread(opening_lanes.that_run, loader.models)
        return json.dumps(hello)

    async def explorer_start(request: Start) -> str:
        """Starts a run: `{session, state, prompt, max_new_tokens, lanes, models, chat}` gives `{run}`.
        `refused`: for each lane why it cannot run, or null; if none can, there is no run but an `error`.
        """

        async def start() -> dict:
            checked = check(request)
            await loader.settled(checked.models)
            try:
                run = await asyncio.to_thread(runs.start, checked, request.session, request.state)
            except NoLane as none:
                return {"error": str(none), "refused": none.reasons}
            return {"run": run.id, "refused": run.refused}

        return await as_json(start())

    async def explorer_control(request: Control) -> str:
        """Pauses, resumes, steps or stops a run: `{run, action}` gives `{state}`."""

        async def act() -> dict:
            if request.run == EXAMPLE:
                raise Refusal("The stored example has ended; press Run to decode your own.")
            return {"state": runs.control(request.run, request.action).shown_state}

        return await as_json(act())

    async def explorer_pull(request: Pull) -> str:
        """Returns what is new since the page's cursors, see `Runs.pull`."""
        cursors = [cursor.model_dump() for cursor in request.cursors]
        return await as_json(runs.pull(request.run, cursors, request.wait, request.state))

    own = [explorer_hello, explorer_start, explorer_control, explorer_pull, *lane_functions(runs)]
    parts = (
        branch,
        compare,
        constraint,
        experiments_tab,
        find_strategy,
        lenses_tab,
        lesson,
        links,
        models_tab,
        qr_code,
        save_and_open,
        stop_when,
    )
    return [*own, *(function for part in parts for function in part.functions(runs, loader))]


def lane_functions(runs: Runs) -> list:
    """Those of `server_functions` that ask for one lane: its trace, its tokens, its What-if sliders."""

    async def explorer_trace(request: OfLane) -> str:
        """Returns the whole trace of one lane, `{run, lane}`, in the published JSON format."""

        async def trace() -> dict:
            run = runs.find(request.run)
            run.lane(request.lane)
            return await asyncio.to_thread(lambda: runs.snapshot(run)[request.lane].to_json())

        return await as_json(trace())

    async def explorer_inspect(request: Inspect) -> str:
        """The inspector's card of a token, `{run, lane, node | cell}`, see explorer.inspector.card."""

        async def inspect_on_thread() -> dict:
            trace = runs.find(request.run).lane(request.lane).trace

            def make_card() -> dict:
                if request.cell is not None:
                    return card(inspect_cell(trace, *request.cell))
                return card(inspect(trace, request.node))

            return await asyncio.to_thread(make_card)

        return await as_json(inspect_on_thread())

    async def explorer_code(request: Code) -> str:
        """What the page lacks of the code that ran in a lane, see explorer.inspector.code_drawer."""

        async def drawer_on_thread() -> dict:
            trace = runs.find(request.run).lane(request.lane).trace
            had = request.steps, request.functions, request.places
            return await asyncio.to_thread(lambda: code_drawer.drawer(trace, *had))

        return await as_json(drawer_on_thread())

    async def explorer_what_if(request: OfLane) -> str:
        """Returns the data of a lane's What-if sliders, `{run, lane}`, see explorer.inspector.knobs."""

        async def compute_on_thread() -> dict:
            run = runs.find(request.run)
            run.lane(request.lane)

            def compute() -> dict:
                from explorer.inspector.knob_form import with_form  # needs torch, which is loaded by now
                from explorer.inspector.knobs import knobs

                return with_form(knobs(runs.snapshot(run)[request.lane]), live=True)

            return await asyncio.to_thread(compute)

        return await as_json(compute_on_thread())

    return [explorer_trace, explorer_inspect, explorer_code, explorer_what_if]
