"""The page: one gr.HTML that our own JavaScript fills, the server functions it calls, and the files it needs.

Gradio carries the calls; what is on screen is built by assets/page*.js. Our scripts and the data of the first
picture are in the HTML itself, so that a stored trace is on screen before Gradio's own front end has started.
"""

import asyncio
import json
import time
from dataclasses import asdict

import gradio as gr
from starlette.middleware import Middleware

from decoders.registry import strategies
from explorer import (
    alive,
    assets,
    bad_requests,
    branching,
    comparing,
    endpoints,
    experiments,
    keeping,
    lessons,
    methods,
    microscope,
    model_calls,
    other_machines,
    proving,
    sandbox,
    sharing,
    stored,
)
from explorer.access import Access, Guard
from explorer.inspect_node import inspect, inspect_cell
from explorer.loading import Loader
from explorer.page_data import page_data
from explorer.page_requests import Call, Control, Inspect, OfLane, Pull, Start
from explorer.requests import check, said
from explorer.runs import GONE, Runs
from explorer.sessions import bound
from explorer.sessions import routes as session_routes

TITLE = "Decoding Explorer"
EXAMPLE = "example"  # the public name of the stored run
LOADING_WAIT = 20.0  # seconds a call for the declarations waits before it answers "still loading"

# What runs when Gradio has mounted the element: the page is there already and only moves in.
ON_LOAD = """
if (window.ExplorerPage) ExplorerPage.attach(element, server);
else element.textContent = "This page lacks its own scripts: open it at the address that the app printed.";
"""


def first_data(runs: Runs, loader: Loader) -> dict:
    """What the page needs to show itself: the stored run with its declarations, names and limits."""
    setup = stored.setup()
    run = runs.show(stored.traces(), run_id=EXAMPLE, asked=setup)
    known = {"started": alive.STARTED, "gone": GONE}
    return page_data(run, setup, setup["declarations"], asdict(loader.choice)) | known


def build(runs: Runs, loader: Loader, access: Access | None = None) -> tuple[gr.Blocks, dict]:
    """The Blocks, and the keyword arguments for its `launch`. `access`: who may ask; without it every page of
    the app on this machine.
    """
    access = access or Access()
    functions = [bound(runs, function) for function in server_functions(runs, loader)]
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as demo:
        home = gr.HTML(
            html_template='<div class="explorer-home"></div>', js_on_load=ON_LOAD, server_functions=functions,
            apply_default_css=False, elem_id="explorer-component",
        )  # fmt: skip
        endpoints.declare(runs, loader)
    known = bad_requests.Known(
        {home._id: frozenset(function.__name__ for function in functions)},
        {one.api_name: (one._id, endpoints.INPUTS[one.api_name]) for one in demo.fns.values()},
        lambda session: endpoints.waits(demo, session),
        lambda: endpoints.tools(demo),
    )
    launch = {
        "app_kwargs": {
            "routes": [*assets.routes(), *alive.routes(), *session_routes(runs)],
            "middleware": [
                Middleware(Guard, access=access),
                *bad_requests.middleware(known),
                *assets.middleware(first_data(runs, loader) | {"token": access.token is not None}),
            ],
            "exception_handlers": bad_requests.HANDLERS,
        },
        "theme": gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "mcp_server": endpoints.speaks_mcp(),
        "quiet": True,
        "show_error": False,
    }
    return demo, launch


def server_functions(runs: Runs, loader: Loader) -> list:
    """What the page can ask for. Each takes the model it is annotated with (see `sessions.bound`) and answers
    JSON text, as Gradio walks objects.
    """

    async def explorer_hello(request: Call) -> str:
        """Whether the models are there, all declarations once they are, and how programs are walled in."""
        code = asyncio.create_task(asyncio.to_thread(sandbox.protection))  # it tries, while the models load
        until = time.monotonic() + LOADING_WAIT
        while loader.state == "loading" and time.monotonic() < until:
            await asyncio.sleep(0.05)
        hello = {"mcp": endpoints.speaks_mcp(), "state": loader.state, "sentence": loader.sentence}
        hello["code"] = (await code).sentence
        if loader.state == "ready":
            hello["strategies"] = [s.declaration() for s in strategies().values()]
            hello["facts"] = {role: model.facts() for role, model in loader.models.items()}
        return json.dumps(hello)

    async def explorer_start(request: Start) -> str:
        """Starts a run: `{session, state, prompt, max_new_tokens, lanes, models, chat}` gives `{run}`."""

        async def start() -> dict:
            await loader.settled(check(request)["models"])
            return {"run": (await asyncio.to_thread(runs.start, request, request.session, request.state)).id}

        return await said(start())

    async def explorer_control(request: Control) -> str:
        """pause, resume, step or stop: `{run, action}` gives `{state}`."""

        async def act() -> dict:
            if request.run == EXAMPLE:
                raise ValueError("The stored example has ended; press Run to decode your own.")
            return {"state": runs.control(request.run, request.action).told}

        return await said(act())

    async def explorer_pull(request: Pull) -> str:
        """What is new since the page's cursors: see Runs.pull."""
        cursors = [cursor.model_dump() for cursor in request.cursors]
        return await said(runs.pull(request.run, cursors, request.wait, request.state))

    async def explorer_trace(request: OfLane) -> str:
        """The whole trace of one lane, `{run, lane}`, in the published JSON form."""

        async def trace() -> dict:
            run = runs.find(request.run)
            run.lane(request.lane)
            return await asyncio.to_thread(lambda: runs.snapshot(run)[request.lane].to_json())

        return await said(trace())

    async def explorer_inspect(request: Inspect) -> str:
        """What the trace knows of one token, `{run, lane, node | cell}`: see explorer.inspect_node."""

        async def found() -> dict:
            trace = runs.find(request.run).lane(request.lane).trace
            if request.cell is not None:
                return await asyncio.to_thread(inspect_cell, trace, *request.cell)
            return await asyncio.to_thread(inspect, trace, request.node)

        return await said(found())

    own = [explorer_hello, explorer_start, explorer_control, explorer_pull, explorer_trace, explorer_inspect]
    parts = (
        branching, comparing, experiments, keeping, lessons, methods, microscope, model_calls, other_machines,
        proving, sharing,
    )  # fmt: skip
    return [*own, *(function for part in parts for function in part.functions(runs, loader))]
