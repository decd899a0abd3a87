"""Saving and opening: makes files from runs and runs from files."""

import asyncio
import base64
from pathlib import Path
from typing import NamedTuple

from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.export.fields import known
from explorer.export.file_names import dashed, filename
from explorer.export.foreign_traces import declarations, viewed
from explorer.export.lane_picture import picture, print_figure, slide
from explorer.export.replay_page import replay_html
from explorer.export.run_file import container, pack, settings, title, unpack
from explorer.lessons.lesson import fill_lesson, find, with_pages
from explorer.page_requests import OfRun, Save
from explorer.runs.followed_lane import FollowedLane, read, silence
from explorer.runs.model_pool import Loader
from explorer.runs.run_state import PIECE_OPS, Run, answer
from explorer.runs.scheduler import Runs
from explorer.runs.validation import as_json
from visualizers.analysis.cost_csv import cost_table
from visualizers.analysis.drafted_tokens import drafted_csv
from visualizers.registry import titles

FORMS = {
    "trace": ("trace.json.gz", "application/gzip"),
    "run": ("run.json.gz", "application/gzip"),
    "page": ("page.html", "text/html"),
    "costs": ("costs.csv", "text/csv"),
    "drafted": ("drafted-tokens.csv", "text/csv"),
    "figure": ("figure.html", "text/html"),
    "picture": ("svg", "image/svg+xml"),
    "slide": ("slide.svg", "image/svg+xml"),
    "print": ("print.svg", "image/svg+xml"),
    "graph": ("graph", "text/plain"),
}
ONE_LANE = ("trace", "figure", "picture", "slide", "print", "graph", "drafted")  # forms of one lane
MAX_GRAPH_NODES = 10_000  # a larger graph would keep other visitors waiting for seconds


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_save(request: Save) -> str:
        """`{run, form, lane, views, step, look, width_mm}` gives `{name, type, data, steps}` with data in
        base64: see `save_file`.
        """

        async def save() -> dict:
            file = await asyncio.to_thread(save_file, runs, runs.find(request.run), request)
            data = base64.b64encode(file.data).decode()
            return {"name": file.name, "type": file.kind, "data": data, "steps": file.steps}

        return await as_json(save())

    async def explorer_again(request: OfRun) -> str:
        """`{run}` gives `{run, state, setup, strategies, fields}`: what a page needs in order to show a run
        that it does not know yet; it then pulls the run itself.
        """

        async def describe() -> dict:
            return await asyncio.to_thread(describe_run, runs, runs.find(request.run))

        return await as_json(describe())

    return [explorer_save, explorer_again]


class SavedFile(NamedTuple):
    """A file to download: its name, media type and bytes, and the number of steps it holds of each lane."""

    name: str
    kind: str
    data: bytes
    steps: list[int]


def save_file(runs: Runs, run: Run, request: Save) -> SavedFile:
    """Makes a file of the whole run or of one of its lanes, with the steps decoded so far.

    The forms in `ONE_LANE` require a lane. Raises Refusal with one sentence.
    """
    traces, form, lane, views = runs.snapshot(run), request.form, request.lane, request.views
    if lane is not None and lane >= len(traces) or form in ONE_LANE and lane is None:
        raise Refusal("There is no such lane in this run; choose one that was decoded.")
    shown = views if views is not None and len(views) == len(traces) else [None] * len(traces)
    numbers = range(len(traces)) if lane is None else [lane]
    chosen = [traces[i] for i in numbers]
    setup = {**settings(chosen), **run.asked}
    for lane_setup, i in zip(setup["lanes"], numbers, strict=True):
        lane_setup["view"] = shown[i]
    setup = viewed(setup, declarations(chosen), chosen)
    make = {
        "trace": lambda: pack(chosen[0].to_json()),
        "run": lambda: pack(container(chosen, setup)),
        "page": lambda: replay_html(
            chosen, setup, filled_lesson(request.lesson, chosen), [run.records[i].depths for i in numbers]
        ).encode(),
        "figure": lambda: figure_page(chosen[0], setup["lanes"][0]["view"], request.step, request.look),
        "picture": lambda: picture(chosen[0], setup["lanes"][0]["view"], request.step, request.look).encode(),
        "slide": lambda: slide(chosen[0], setup["lanes"][0]["view"], request.step, request.look).encode(),
        "print": lambda: print_figure(
            chosen[0], setup["lanes"][0]["view"], request.step, request.width_mm
        ).encode(),
        "graph": lambda: graph_file(chosen[0], request.kind, request.ending),
        "drafted": lambda: drafted_tokens_csv(chosen[0]),
        "costs": lambda: cost_table(chosen).encode(),
    }
    ending, kind = FORMS[form]
    if form == "graph":
        ending += f".{request.ending}"
    if form in ("picture", "slide", "print"):
        ending = f"{dashed(titles()[setup['lanes'][0]['view']])}.{ending}"
    steps = [len(trace.steps) for trace in chosen]
    return SavedFile(filename(setup["prompt"], lane, ending), kind, make[form](), steps)


def filled_lesson(name: str | None, traces: list[Trace]) -> dict | None:
    """A lesson with its text filled in from these traces, for a saved page; None if it does not fit them."""
    if name is None:
        return None
    try:
        lesson = find(name)
        return {"lesson": with_pages(lesson, saved=True), "message": fill_lesson(lesson, traces)}
    except Refusal:
        return None


def figure_page(trace: Trace, view: str, step: int | None, look: str) -> bytes:
    """A view of a lane as one HTML file that contains a Plotly figure."""
    from visualizers import figures  # on demand: plotly is slow to import

    at = None if step is None else min(step, len(trace.steps))
    return figures.page(trace.figure(view, at, look)).encode()


def drafted_tokens_csv(trace: Trace) -> bytes:
    """All drafted tokens of a lane as CSV. Raises Refusal with one sentence if nothing was drafted."""
    if not trace.costs.proposed:
        raise Refusal("This lane has drafted nothing; choose one with a draft, such as Speculative decoding.")
    return drafted_csv(trace).encode()


def graph_file(trace: Trace, kind: str, ending: str) -> bytes:
    """A graph of a lane in the format of this file ending. Raises Refusal with one sentence."""
    from visualizers.graphs import graph  # on demand: networkx is slow to import
    from visualizers.graphs.export import FORMATS

    result = graph(trace, kind)
    if len(result) > MAX_GRAPH_NODES:
        raise Refusal(
            f"This graph has {len(result):,} nodes; the app writes at most {MAX_GRAPH_NODES:,}. Save the "
            f"trace and write the graph with Python: load(file).graph({kind!r})."
        )
    return FORMATS[f".{ending}"](result).encode()


def picture_name(run: Run, trace: Trace, lane: int, view: str) -> str:
    """The file name of a picture, without its ending: `once-upon-a-time.lane-2.draft-rounds`."""
    prompt = {**settings([trace]), **run.asked}["prompt"]
    return filename(prompt, lane, dashed(titles()[view]))


def describe_run(runs: Runs, run: Run) -> dict:
    """Returns what a page needs in order to show a run, see `explorer_again`."""
    traces = runs.snapshot(run)
    declared = declarations(traces)
    setup = viewed({**settings(traces), **run.asked}, declared, traces)
    return {"run": run.id, "state": run.state, "setup": setup, **known(declared.values())}


def open_file(runs: Runs, data: bytes, session: str) -> dict:
    """Adds the run in a file to `runs` and returns what the page needs to show it.

    Raises Refusal with one sentence if the file cannot be read.
    """
    return show_run(runs, *unpack(data), session)


def follow_file(runs: Runs, path: Path, session: str) -> dict:
    """Adds a run that follows a trace file to `runs` and returns what the page needs to show it; of a trace
    that has ended, the same as for a file that is opened. Raises Refusal with one sentence.
    """
    found, written = read(path)
    found.ended = found.ended or silence(written)
    if found.ended is not None:
        return show_run(runs, settings([found]), [found], session)
    # What a view needs is looked up in all steps so far, as the lane shows them in a moment.
    declared = declarations([found])
    setup = viewed(settings([found]), declared, [found])
    del setup["models"]  # those of the page stay: nothing of this run will be decoded here
    run = runs.begin(lambda: [FollowedLane(path, found, written)], session, setup)
    return shown(run, setup, declared) | {"following": True}


def show_run(runs: Runs, setup: dict, traces: list[Trace], session: str) -> dict:
    """Adds a run of stored traces to `runs` and returns what the page needs to show it."""
    declared = declarations(traces)
    setup = viewed(setup, declared, traces)
    return shown(runs.show(traces, session, asked=setup), setup, declared)


def shown(run: Run, setup: dict, declared: dict[str, dict]) -> dict:
    """What the page needs to show a run that it did not start."""
    cursors = [{"view": lane["view"], "ops": 0, "rows": 0} for lane in setup["lanes"]]
    return {
        "run": run.id,
        "title": title(setup["prompt"]),
        "setup": setup,
        "answer": answer(run, cursors, PIECE_OPS),
        **known(declared.values()),
    }
