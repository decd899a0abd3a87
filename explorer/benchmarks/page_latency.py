"""Measures the page as a user experiences it in headless Chromium: start-up, first picture, and the time from
event to paint.

Starts the real app in a process of its own. Needs Playwright and a Chromium (`make setup` and `make test`
install both); without them a row says what is missing.
"""

import argparse
import importlib.util
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.access import TOKEN, TOKEN_VARIABLE
from explorer.benchmarks.browser import FLAGS, find
from explorer.benchmarks.free_port import free_port
from explorer.timing import figure

ROOT = Path(__file__).resolve().parents[2]
LANES = ("beam", "speculative", "sample", "jacobi")
NEW_TOKENS = 64
STARTS = 5
LIVE = ("greedy", "beam", "sample")
LIVE_TOKENS = (40, 512)
RUNS = 5
POSITIONS = 128  # of a canvas
CANVAS_GOAL = 35  # milliseconds
CANVAS = {
    "prompt": "Once upon a time",
    "lanes": [{"strategy": "masked_diffusion", "parameters": {"block_length": 0}, "view": "canvas_grid"}],
}
READY = "window.decodingExplorer && window.decodingExplorer.app.models.state === 'ready'"
SINCE_FIRST_BYTE = (
    "window.decodingExplorer.drawn - performance.getEntriesByType('navigation')[0].responseStart"
)


@contextmanager
def fresh_page() -> Iterator:
    """An empty page in a browser that is already running."""
    from playwright.sync_api import sync_playwright

    path = find()  # called first: it may start Playwright, which cannot run twice at a time
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()


@contextmanager
def app(options: argparse.Namespace, page) -> Iterator[float]:
    """Starts the app and opens it in `page` as soon as it answers; yields the time of its start."""
    port = free_port()
    began = time.time()
    command = [sys.executable, "app.py", "--port", str(port)]
    command += ["--model", options.model, "--draft", options.draft]
    token = secrets.token_urlsafe()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, TOKEN_VARIABLE: token},
    )
    try:
        answers(port, began + 60)
        page.goto(f"http://127.0.0.1:{port}/?{TOKEN}={token}", wait_until="commit")
        yield began
    finally:
        process.terminate()
        process.wait(10)


def answers(port: int, until: float) -> None:
    """Waits until an app listens; raises OSError if it does not by then. A browser that polled instead would
    load an error page each time, on a core that the app could use.
    """
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.time() > until:
                raise
            time.sleep(0.02)


def missing() -> list[dict] | None:
    """A row that says why the page cannot be measured; None if it can."""
    if importlib.util.find_spec("playwright") is None:
        return [
            {"name": "page", "note": "not measured: Playwright is not installed (make setup installs it)"}
        ]
    if find() is None:
        return [{"name": "page", "note": "not measured: no Chromium found (set CHROMIUM to its path)"}]
    return None


def starting(options: argparse.Namespace) -> list[dict]:
    """Seconds from `python app.py` until Run works, and from the page's first byte to the stored trace.

    Medians of several starts; the first one also fills the disk cache.
    """
    if rows := missing():
        return rows
    drawn, usable = [], []
    for _ in range(STARTS):
        with fresh_page() as page, app(options, page) as began:
            page.wait_for_function("window.decodingExplorer && window.decodingExplorer.drawn", timeout=60_000)
            drawn.append(page.evaluate(SINCE_FIRST_BYTE) / 1000)
            page.wait_for_function(READY, timeout=60_000)
            usable.append(time.time() - began)
    return [
        figure(
            "from python app.py to a usable page, models loaded", statistics.median(usable), "s", 8, False
        ),
        figure("from the page's first byte to the stored trace", statistics.median(drawn), "s", 1, False),
    ]


def drawing(options: argparse.Namespace) -> list[dict]:
    """Time from event to paint with four lanes of 64 tokens: while they decode at full speed, and where each
    step waits for a press, as it did when the app paused for every picture. And how many steps of the traces
    the page lacks at the end.
    """
    if rows := missing():
        return rows
    with fresh_page() as page, app(options, page):
        latencies = painted(page, LANES, NEW_TOKENS)
        missed = page.evaluate(MISSED_STEPS)
        page.evaluate("latencies.length = 0")
        page.evaluate(STEP_THROUGH)
        stepped = sorted(page.evaluate("latencies"))
    return [
        *from_event_to_paint("from event to paint", latencies, (50, 150)),
        *from_event_to_paint("from event to paint, step by step", stepped, (32, 64)),
        figure("steps of the traces that the page lacks", missed, "steps", 0, at_least=False),
    ]


def from_event_to_paint(name: str, latencies: list[float], goals: tuple[float, float]) -> list[dict]:
    """Two rows: median and 95th percentile of sorted milliseconds."""
    high = latencies[int(0.95 * (len(latencies) - 1))]
    return [
        figure(
            f"{name}, median", statistics.median(latencies), "ms", goals[0], False, samples=len(latencies)
        ),
        figure(f"{name}, 95th percentile", high, "ms", goals[1], False),
    ]


def canvas(options: argparse.Namespace) -> list[dict]:
    """Time from event to paint for a canvas of 128 positions as a grid, which has a row for each forward."""
    if rows := missing():
        return rows
    with fresh_page() as page, app(options, page):
        page.wait_for_function(READY, timeout=60_000)
        page.evaluate("setup => window.decodingExplorer.app.applySetup(setup)", CANVAS)
        latencies = painted(page, (), POSITIONS)
    name = f"a canvas of {POSITIONS} positions: from event to paint, median"
    value = statistics.median(latencies)
    return [figure(name, value, "ms", CANVAS_GOAL, at_least=False, samples=len(latencies))]


def painted(page, lanes: tuple[str, ...], tokens: int) -> list[float]:
    """Runs these lanes (none: those on the page); sorted milliseconds from event to paint of all steps."""
    set_up(page, lanes, tokens)
    page.evaluate(MEASURE)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("window.decodingExplorer.state === 'done'", timeout=120_000)
    page.wait_for_timeout(500)
    return sorted(page.evaluate("window.latencies"))


def running(options: argparse.Namespace) -> list[dict]:
    """The time of a run on the page, from pressing Run to the last step, relative to the time that its lanes
    compute: medians of several runs of three lanes.
    """
    if rows := missing():
        return rows
    rows = []
    for tokens in LIVE_TOKENS:
        with fresh_page() as page, app(options, page):
            set_up(page, LIVE, tokens)
            ratio = statistics.median(page.evaluate(RUN) for _ in range(RUNS))
        name = f"three lanes of {tokens} tokens on the page, relative to the lanes' computing"
        rows.append(figure(name, ratio, "x", 1.3, at_least=False))
    return rows


def set_up(page, lanes: tuple[str, ...], tokens: int) -> None:
    """Sets strategies and max_new_tokens on the page once the models are loaded."""
    page.wait_for_function(READY, timeout=60_000)
    for _ in range(len(lanes) - page.evaluate("window.decodingExplorer.lanes.length")):
        page.get_by_role("button", name="+ Lane").click()
    for number, strategy in enumerate(lanes, 1):
        lane = page.get_by_role("region", name=f"Lane {number}")
        lane.get_by_role("combobox").first.select_option(strategy)
    page.get_by_label("max_new_tokens").fill(str(tokens))


# Presses Run and waits for the end of the run: its seconds relative to those that the lanes compute.
RUN = """async () => {
  const explorer = window.decodingExplorer, before = explorer.run, began = performance.now();
  const buttons = [...document.querySelectorAll("button")];
  buttons.find((one) => one.textContent.trim() === "Run" && one.offsetParent).click();
  const nap = () => new Promise((done) => setTimeout(done, 5));
  while (explorer.run === before || explorer.state !== "done") await nap();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const seconds = explorer.app.lanes.reduce((sum, lane) => sum + lane.rows.at(-1).seconds, 0);
  return (performance.now() - began) / 1000 / seconds;
}"""

# Records in `latencies` how long each step of later runs takes from its event on the server to its paint, in
# milliseconds; both clocks count from the epoch.
MEASURE = """() => {
    const app = decodingExplorer.app, offset = Date.now() - performance.now();
    window.latencies = [];
    app.on("run", (run) => {
        const seen = new Map();
        const look = () => {
            if (app.run !== run) return;
            let open = !run.over;
            for (const lane of app.lanes) {
                if (lane.view === "text" || lane.runIndex === null) continue;
                const painted = lane.scene.paintedStep, from = seen.get(lane) ?? -1;
                for (let step = from + 1; step <= painted && step < lane.rows.length; step++) {
                    if (!app.playback.following) continue;
                    latencies.push(lane.scene.lastPaint + offset - lane.rows[step].wall * 1000);
                }
                seen.set(lane, Math.max(from, painted));
                open ||= app.playback.following && seen.get(lane) < lane.rows.length - 1;
            }
            if (open) requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}"""

# Steps through another run, one press after the last step has been painted, to its end.
STEP_THROUGH = """async () => {
  const explorer = decodingExplorer, app = explorer.app, before = explorer.run;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const sum = () => app.lanes.reduce((count, lane) => count + lane.rows.length, 0);
  const steps = () => (explorer.run === before ? 0 : sum());
  const shown = () => app.lanes.every((lane) => lane.scene.paintedStep >= lane.rows.length - 1);
  app.lanes[0].setup.seed += 1; // other settings: the first press starts another run
  while (explorer.run === before || explorer.state !== "done") {
    const known = steps();
    await app.press("step");
    while ((steps() === known || !shown()) && explorer.state !== "done") await frame();
    for (let i = 0; i < 3; i++) await frame(); // the other lanes' steps of this press
  }
}"""

# Asks the server for the traces and counts the steps that the page lacks.
MISSED_STEPS = """async () => {
  const explorer = window.decodingExplorer;
  let lost = 0;
  for (let i = 0; i < explorer.lanes.length; i++) {
    const trace = await explorer.call("explorer_trace", { run: explorer.run, lane: i });
    lost += Math.abs(trace.steps.length - explorer.lanes[i].count);
  }
  return lost;
}"""
