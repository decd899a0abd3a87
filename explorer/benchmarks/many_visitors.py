"""Load test: the real app in a process of its own, and many simulated visitors who press Run at once.

Each visitor makes the HTTP calls that the page makes: it starts a run of two lanes, pulls new steps, waits as
long as a page takes to paint, and pulls again. Measured are the waits between steps, the steps of the trace
that never arrive, and the app's memory.
"""

import argparse
import asyncio
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from decoders.refusal import Refusal
from explorer.access import TOKEN_VARIABLE
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
Call = Callable[..., Awaitable[dict]]  # (session, name of the server function, ...its request)
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
            before = app.megabytes()
            seen = asyncio.run(crowd(app.address, count))
            yield waits(f"{count} visitors, two lanes each: 95th percentile of the waits for a step", seen)
            yield lost(f"{count} visitors: steps that did not arrive", seen)
            name = f"{count} visitors: memory of the app afterwards"
            yield figure(name, app.megabytes(), "MB", 1500, False, before=before)
    with served(options) as app:
        for name, lane in HEAVY.items():
            seen = asyncio.run(crowd(app.address, OTHERS, lane))
            yield waits(f"{OTHERS} visitors while {name} runs: 95th percentile of the waits", seen)


def soaking(options: argparse.Namespace) -> Iterator[dict]:
    """The app's memory over a thousand short runs, each by a different visitor."""
    with served(options) as app:
        memory = {0: app.megabytes()}
        for look in SOAK_LOOKS:
            asyncio.run(passing(app.address, max(memory), look))
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
    """The app under test: its address and process id."""

    address: str
    pid: int

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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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
        yield App(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(10)


async def crowd(
    address: str,
    count: int,
    heavy: tuple | None = None,
    lanes: Sequence[str] = LANES,
    views: Sequence[str] = VIEWS,
) -> list[Seen]:
    """What each of `count` visitors of these lanes experienced, optionally while another visitor runs a heavy
    lane.
    """
    async with caller(address, count) as call:
        load = None if heavy is None else asyncio.create_task(weigh(call, *heavy))
        if load is not None:
            await asyncio.sleep(0.5)
        try:
            visits = (visit(call, number, lanes=lanes, views=views) for number in range(count))
            return await asyncio.gather(*visits)
        finally:
            if load is not None:
                load.cancel()
                await asyncio.gather(load, return_exceptions=True)


async def passing(address: str, first: int, last: int) -> None:
    """Runs short runs number `first` to `last` - 1, SOAK_AT_ONCE at a time."""
    numbers = iter(range(first, last))

    async def some(call: Call) -> None:
        for number in numbers:
            await visit(call, number, SOAK_TOKENS)

    async with caller(address, SOAK_AT_ONCE) as call:
        await asyncio.gather(*(some(call) for _ in range(SOAK_AT_ONCE)))


@asynccontextmanager
async def caller(address: str, count: int) -> AsyncIterator[Call]:
    """A function that calls a server function of the page in a session; up to `count` visitors share it."""
    limits = httpx.Limits(
        max_connections=2 * count + 2, keepalive_expiry=2
    )  # the server closes idle ones after five
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits, headers=bearer) as client:
        components = (await client.get("/config")).json()["components"]
        component = next(c["id"] for c in components if c["props"].get("elem_id") == "explorer-drawn-decode")

        async def call(session: str, name: str, **request: Any) -> dict:
            data = {"session": session, **request}
            body = {"component_id": component, "fn_name": name, "session_hash": session[:10], "data": data}
            reply = json.loads((await posted(client, body)).raise_for_status().json())
            if "error" in reply:
                raise Refusal(reply["error"])
            return reply

        yield call


async def posted(client: httpx.AsyncClient, body: dict) -> httpx.Response:
    """The answer to a call; like browsers, sends again if the server has just closed an idle connection."""
    for _ in range(2):
        with suppress(httpx.ReadError, httpx.RemoteProtocolError):
            return await client.post("/gradio_api/component_server", json=body)
    return await client.post("/gradio_api/component_server", json=body)


async def visit(
    call: Call,
    number: int,
    new_tokens: int = NEW_TOKENS,
    lanes: Sequence[str] = LANES,
    views: Sequence[str] = VIEWS,
) -> Seen:
    """Runs one visitor's lanes from start to end."""
    asked = [{"strategy": name, "parameters": {}, "seed": number} for name in lanes]
    return await following(call, PROMPTS[number % len(PROMPTS)], new_tokens, asked, views)


async def weigh(call: Call, strategy: str, parameters: dict, view: str) -> Seen:
    """Runs a heavy lane again and again until cancelled."""
    while True:
        lane = {"strategy": strategy, "parameters": parameters, "seed": 0}
        await following(call, PROMPTS[0], NEW_TOKENS, [lane], [view])


async def following(
    call: Call, prompt: str, new_tokens: int, lanes: list[dict], views: Sequence[str]
) -> Seen:
    """Starts a run and pulls it to its end; then compares what arrived with the lanes' traces."""
    session, seen, asked = secrets.token_hex(16), Seen(), time.monotonic()
    started = await call(session, "explorer_start", prompt=prompt, max_new_tokens=new_tokens, lanes=lanes)
    run, state, more = started["run"], "running", False
    cursors = [{"view": view, "ops": 0, "rows": 0} for view in views]
    while more or state not in OVER:
        answer = await call(session, "explorer_pull", run=run, cursors=cursors, wait=1, state=state)
        state, more = answer["state"], answer.get("more", False)
        for cursor, lane in zip(cursors, answer["lanes"], strict=True):
            cursor["ops"] += len(lane["ops"])
            cursor["rows"] += len(lane["rows"])
        if any(lane["rows"] for lane in answer["lanes"]):
            now = time.monotonic()
            seen.waits.append(now - asked)
            asked = now
        await asyncio.sleep(PAINTING)
    for lane, cursor in enumerate(cursors):
        trace = await call(session, "explorer_trace", run=run, lane=lane)
        seen.lost += abs(len(trace["steps"]) - cursor["ops"]) + abs(len(trace["steps"]) - cursor["rows"])
    return seen
