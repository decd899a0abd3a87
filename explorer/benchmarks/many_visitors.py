"""Load test: the real app in a process of its own, and many simulated visitors who press Run at once.

Each visitor makes the HTTP calls that the page makes: it starts a run of two lanes, pulls new steps, waits as
long as a page takes to paint, and pulls again. Measured are the waits between steps, the steps of the trace
that never arrive, and the app's memory.
"""

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from decoders.refusal import Refusal
from explorer.access import TOKEN_VARIABLE
from explorer.benchmarks.free_port import free_port
from explorer.timing import NEW_TOKENS, PROMPTS, figure

ROOT = Path(__file__).resolve().parents[2]
TOKEN = secrets.token_urlsafe()  # access token of the apps started here
CROWDS = (1, 10, 20, 50, 100)
LANES = ("beam", "speculative")  # those of a freshly opened page
VIEWS = ("beam_tree", "draft_rounds")
PAINTING = 0.05  # seconds between an answer and the next pull: the time a page takes to paint two lanes
OVER = ("done", "stopped", "failed")
OTHERS = 10  # ordinary visitors while a heavy lane runs
HEAVY = {  # the most expensive lanes that a page may request: strategy, parameters, view
    "speculative_tree, widths 16 six times": ("speculative_tree", {"widths": [16] * 6}, "draft_rounds"),
    "pg_td, 512 rollouts": ("pg_td", {"rollouts": 512}, "visit_tree"),
    "value_mcts, 512 simulations of width 64": (
        "value_mcts",
        {"simulations": 512, "width": 64},
        "visit_tree",
    ),
    "treecoder, 2,000 rollouts": ("treecoder", {"decoder": "mcts", "rollouts": 2000}, "beam_tree"),
    "stochastic_beam, 64 beams": ("stochastic_beam", {"num_beams": 64}, "beam_tree"),
    "lookahead, 64 x 16": ("lookahead", {"window_size": 64, "ngram_size": 16}, "parallel_grid"),
}
SOAK, SOAK_LOOKS, SOAK_AT_ONCE, SOAK_TOKENS = 1000, (100, 500, 1000), 8, 16
GROWTH = 1.1  # goal: maximum ratio of memory after 500 more runs


@dataclass
class Seen:
    """What one visitor experienced: the waits for each step in seconds, and the number of steps missed."""

    waits: list[float] = field(default_factory=list)
    lost: int = 0


def visiting(options: argparse.Namespace) -> Iterator[dict]:
    """Waits, missing steps and memory with 1 to 100 visitors; then waits while each heavy lane runs."""
    with served(options) as app:
        for count in CROWDS:
            before, people = app.megabytes(), f"{count} visitor{'s' * (count > 1)}"
            seen = crowd(app, count)
            yield waits(f"{people}, two lanes each: 95th percentile of the waits for a step", seen)
            yield lost(f"{people}: steps that did not arrive", seen)
            name = f"{people}: memory of the app afterwards"
            yield figure(name, app.megabytes(), "MB", 1500, False, before=before)
    with served(options) as app:
        for name, lane in HEAVY.items():
            seen = crowd(app, OTHERS, lane)
            yield waits(f"{OTHERS} visitors while {name} runs: 95th percentile of the waits", seen)


def soaking(options: argparse.Namespace) -> Iterator[dict]:
    """The app's memory over a thousand short runs, each by a different visitor."""
    with served(options) as app:
        memory = {0: app.megabytes()}
        for look in SOAK_LOOKS:
            passing(app, max(memory), look)
            memory[look] = app.megabytes()
            yield figure(f"memory of the app after {look} short runs", memory[look], "MB", 1500, False)
    growth = memory[SOAK_LOOKS[-1]] / memory[SOAK_LOOKS[-2]]
    name = f"memory after {SOAK_LOOKS[-1]} against {SOAK_LOOKS[-2]} short runs"
    yield figure(name, growth, "x", GROWTH, False, megabytes=memory)


def waits(name: str, seen: list[Seen]) -> dict:
    """A row with the 95th percentile of the waits, in seconds."""
    every = sorted(wait for one in seen for wait in one.waits)
    slow = statistics.quantiles(every, n=20)[-1]
    return figure(name, slow, "s", 2, False, longest=every[-1], median=statistics.median(every))


def lost(name: str, seen: list[Seen]) -> dict:
    """A row with the number of steps that the visitors missed."""
    return figure(name, sum(one.lost for one in seen), "steps", 0, False)


@dataclass
class App:
    """The app under test: its address, its process id, and the component that answers the page's calls."""

    address: str
    pid: int
    component: int

    def megabytes(self) -> float:
        """Resident memory of the process, in MB of 2**20 bytes; NaN without /proc."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        except OSError:
            return float("nan")
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


@contextmanager
def served(options: argparse.Namespace) -> Iterator[App]:
    """Starts the app and yields it once its models are loaded. Raises ValueError if it does not start."""
    port = free_port()
    command = [
        sys.executable,
        "app.py",
        "--port",
        str(port),
        "--model",
        options.model,
        "--draft",
        options.draft,
        "--device",
        options.device or "auto",
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, TOKEN_VARIABLE: TOKEN},
    )
    try:
        for line in process.stdout:
            if line.startswith("Models loaded"):
                break
        else:
            raise Refusal("the app did not start; python app.py says why.")
        address = f"http://127.0.0.1:{port}"
        yield App(address, process.pid, component_at(address))
    finally:
        process.terminate()
        process.wait(10)


def component_at(address: str) -> int:
    """The id of the component whose server functions the page calls."""
    config = answered(HTTPConnection(address.removeprefix("http://"), timeout=120), "GET", "/config")
    wanted = "explorer-drawn-decode"
    return next(one["id"] for one in config["components"] if one["props"].get("elem_id") == wanted)


def crowd(
    app: App,
    count: int,
    heavy: tuple | None = None,
    lanes: Sequence[str] = LANES,
    views: Sequence[str] = VIEWS,
) -> list[Seen]:
    """What each of `count` visitors of these lanes experienced, optionally while another visitor runs a heavy
    lane.
    """
    over = threading.Event()
    with ThreadPoolExecutor(count + 1) as threads:
        if heavy is not None:
            threads.submit(weigh, app, over, *heavy)
            time.sleep(0.5)
        try:
            visits = [threads.submit(visit, app, at, NEW_TOKENS, lanes, views) for at in range(count)]
            return [one.result() for one in visits]
        finally:
            over.set()


def passing(app: App, first: int, last: int) -> None:
    """Runs short runs number `first` to `last` - 1, SOAK_AT_ONCE at a time."""
    with ThreadPoolExecutor(SOAK_AT_ONCE) as threads:
        list(threads.map(lambda number: visit(app, number, SOAK_TOKENS), range(first, last)))


class Page:
    """The calls of one visitor's page, over one connection."""

    def __init__(self, app: App):
        self.connection = HTTPConnection(app.address.removeprefix("http://"), timeout=120)
        self.component = app.component
        self.session = secrets.token_hex(16)

    def call(self, name: str, **request: Any) -> dict:
        """The answer of a server function of the page. Raises Refusal with what the function refuses."""
        body = {
            "component_id": self.component,
            "fn_name": name,
            "session_hash": self.session[:10],
            "data": {"session": self.session, **request},
        }
        answer = answered(self.connection, "POST", "/gradio_api/component_server", json.dumps(body))
        reply = json.loads(answer)
        if "error" in reply:
            raise Refusal(reply["error"])
        return reply


def answered(connection: HTTPConnection, method: str, path: str, body: str | None = None) -> Any:
    """The JSON answer to a request; like browsers, asks again if the server has just closed an idle
    connection. Raises OSError if it does so again, ValueError for an answer that is an error.
    """
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
    except (ConnectionError, HTTPException):
        connection.close()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
    text = response.read()
    if response.status != HTTPStatus.OK:
        raise ValueError(f"{path} answered {response.status}: {text[:200]!r}")
    return json.loads(text)


def visit(
    app: App,
    number: int,
    new_tokens: int = NEW_TOKENS,
    lanes: Sequence[str] = LANES,
    views: Sequence[str] = VIEWS,
) -> Seen:
    """Runs one visitor's lanes from start to end."""
    asked = [{"strategy": name, "parameters": {}, "seed": number} for name in lanes]
    return following(Page(app), PROMPTS[number % len(PROMPTS)], new_tokens, asked, views)


def weigh(app: App, over: threading.Event, strategy: str, parameters: dict, view: str) -> None:
    """Runs a heavy lane again and again until `over`."""
    lane = {"strategy": strategy, "parameters": parameters, "seed": 0}
    while not over.is_set():
        following(Page(app), PROMPTS[0], NEW_TOKENS, [lane], [view], over)


def following(
    page: Page,
    prompt: str,
    new_tokens: int,
    lanes: list[dict],
    views: Sequence[str],
    over: threading.Event | None = None,
) -> Seen:
    """Starts a run and pulls it to its end, or until `over`; then compares what arrived with the lanes'
    traces.
    """
    seen, asked = Seen(), time.monotonic()
    started = page.call("explorer_start", prompt=prompt, max_new_tokens=new_tokens, lanes=lanes)
    run, state, more = started["run"], "running", False
    cursors = [{"view": view, "ops": 0, "rows": 0} for view in views]
    while more or state not in OVER:
        if over is not None and over.is_set():
            page.call("explorer_control", run=run, action="stop")
            return seen
        answer = page.call("explorer_pull", run=run, cursors=cursors, wait=1, state=state)
        state, more = answer["state"], answer.get("more", False)
        for cursor, lane in zip(cursors, answer["lanes"], strict=True):
            cursor["ops"] += len(lane["ops"])
            cursor["rows"] += len(lane["rows"])
        if any(lane["rows"] for lane in answer["lanes"]):
            now = time.monotonic()
            seen.waits.append(now - asked)
            asked = now
        time.sleep(PAINTING)
    for lane, cursor in enumerate(cursors):
        trace = page.call("explorer_trace", run=run, lane=lane)
        seen.lost += abs(len(trace["steps"]) - cursor["ops"]) + abs(len(trace["steps"]) - cursor["rows"])
    return seen
