"""Measures many visitors at once: the real app in a process of its own, and people who press Run together.

Each visitor makes the HTTP calls that the page makes: it starts a run of two lanes, pulls what is new, takes
as long as a page takes to paint, and pulls again. Counted is how long no step reached a visitor.
"""

import argparse
import asyncio
import json
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from explorer.benchmarks import NEW_TOKENS, PROMPTS, figure

ROOT = Path(__file__).resolve().parent.parent
VISITORS = 20
LANES = ("beam", "speculative")  # those with which the page opens
VIEWS = ("beam_tree", "draft_tree")
PAINTING = 0.05  # seconds from an answer to the next question: what a page needs to paint two lanes
OVER = ("done", "stopped", "failed")


def visiting(options: argparse.Namespace) -> list[dict]:
    """The longest wait for a step of any of twenty visitors, from Run to the end of the last run."""
    with served(options) as address:
        waits = asyncio.run(crowd(address))
    worst = [max(gaps) for gaps in waits]
    name = f"{VISITORS} visitors, two lanes each: longest wait for a step"
    typical = statistics.median(gap for gaps in waits for gap in gaps)
    return [
        figure(
            name, max(worst), "s", 1, False, median_of_the_longest=statistics.median(worst), typical=typical
        )
    ]


@contextmanager
def served(options: argparse.Namespace) -> Iterator[str]:
    """The address of the app, started for this, as soon as its models are loaded."""
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
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        for line in process.stdout:
            if line.startswith("Models loaded"):
                break
        else:
            raise ValueError("the app did not start; python app.py says why.")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


async def crowd(address: str) -> list[list[float]]:
    """The waits of each visitor, in seconds."""
    limits = httpx.Limits(max_connections=2 * VISITORS, keepalive_expiry=2)  # the server closes after five
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        components = (await client.get("/config")).json()["components"]
        component = next(c["id"] for c in components if c["props"].get("elem_id") == "explorer-component")
        return await asyncio.gather(*(visit(client, component, number) for number in range(VISITORS)))


async def visit(client: httpx.AsyncClient, component: int, number: int) -> list[float]:
    """One visitor's run: the times between answers that brought steps."""
    session = secrets.token_hex(16)

    async def call(name: str, **request) -> dict:
        data = {"session": session, **request}
        body = {"component_id": component, "fn_name": name, "session_hash": session[:10], "data": data}
        answer = (await client.post("/gradio_api/component_server", json=body)).raise_for_status()
        told = json.loads(answer.json())
        if "error" in told:
            raise ValueError(f"visitor {number}: {told['error']}")
        return told

    asked = time.monotonic()
    lanes = [{"strategy": name, "parameters": {}, "seed": number} for name in LANES]
    prompt = PROMPTS[number % len(PROMPTS)]
    run = (await call("explorer_start", prompt=prompt, max_new_tokens=NEW_TOKENS, lanes=lanes))["run"]
    cursors = [{"view": view, "ops": 0, "rows": 0} for view in VIEWS]
    state, gaps = "running", []
    while state not in OVER:
        answer = await call("explorer_pull", run=run, cursors=cursors, wait=1, state=state)
        state = answer["state"]
        for cursor, lane in zip(cursors, answer["lanes"], strict=True):
            cursor["ops"] += len(lane["ops"])
            cursor["rows"] += len(lane["rows"])
        if any(lane["rows"] for lane in answer["lanes"]):
            now = time.monotonic()
            gaps.append(now - asked)
            asked = now
        await asyncio.sleep(PAINTING)
    return gaps
