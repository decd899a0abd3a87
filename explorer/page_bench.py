"""Measures the page as a person meets it: start-up, first picture, and from event to paint, in headless
Chromium.

Starts the real app in a process of its own. Needs Playwright and a Chromium (both come with `make setup` and
`make test`); where they are missing it says so instead of guessing.
"""

import argparse
import importlib.util
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.benchmarks import figure

ROOT = Path(__file__).resolve().parent.parent
LANES = ("beam", "speculative", "sample", "jacobi")
NEW_TOKENS = 64
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def browser_path() -> str | None:
    """An installed Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextmanager
def app(options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """The running app: (address, time at which it was started)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.time()
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
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/", began
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def page_of(address: str) -> Iterator:
    """A page of a fresh browser at `address`, retried until the app answers."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        until = time.time() + 60
        while True:
            try:
                page.goto(address, wait_until="commit")
                break
            except Error:
                if time.time() > until:
                    raise
                time.sleep(0.05)
        yield page
        browser.close()


def missing() -> list[dict] | None:
    """The row that says why the page could not be measured, or None."""
    if importlib.util.find_spec("playwright") is None:
        return [
            {"name": "page", "note": "not measured: Playwright is not installed (make setup installs it)"}
        ]
    if browser_path() is None:
        return [{"name": "page", "note": "not measured: no Chromium found (set CHROMIUM to its path)"}]
    return None


def starting(options: argparse.Namespace) -> list[dict]:
    """Seconds from `python app.py` until Run works, and from the page's first byte until the stored trace is
    drawn.
    """
    if rows := missing():
        return rows
    with app(options) as (address, began), page_of(address) as page:
        page.wait_for_function("window.decodingExplorer && window.decodingExplorer.drawn", timeout=60_000)
        drawn = page.evaluate(
            "window.decodingExplorer.drawn - performance.getEntriesByType('navigation')[0].responseStart"
        )
        page.wait_for_function(
            "window.decodingExplorer.app.models && window.decodingExplorer.app.models.state === 'ready'",
            timeout=60_000,
        )
        usable = time.time() - began
    return [
        figure("from python app.py to a usable page, models loaded", usable, "s", 8, at_least=False),
        figure("from the page's first byte to the stored trace", drawn / 1000, "s", 1, at_least=False),
    ]


def drawing(options: argparse.Namespace) -> list[dict]:
    """From event to paint with four lanes of 64 tokens, and whether every node of the traces is in the page
    at the end.
    """
    if rows := missing():
        return rows
    with app(options) as (address, _), page_of(address) as page:
        page.wait_for_function(
            "window.decodingExplorer && window.decodingExplorer.app.models.state === 'ready'", timeout=60_000
        )
        for _ in range(len(LANES) - page.evaluate("window.decodingExplorer.lanes.length")):
            page.get_by_role("button", name="+ Lane").click()
        for number, strategy in enumerate(LANES, 1):
            lane = page.get_by_role("region", name=f"Lane {number}")
            lane.get_by_role("combobox").first.select_option(strategy)
        page.get_by_label("max_new_tokens").fill(str(NEW_TOKENS))
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function("window.decodingExplorer.state === 'done'", timeout=120_000)
        page.wait_for_timeout(500)
        latencies = sorted(page.evaluate("window.decodingExplorer.latencies"))
        lost = page.evaluate(LOST_NODES)
    return [
        figure(
            "from event to paint, median",
            statistics.median(latencies),
            "ms",
            50,
            False,
            samples=len(latencies),
        ),
        figure(
            "from event to paint, 95th percentile",
            latencies[int(0.95 * (len(latencies) - 1))],
            "ms",
            150,
            False,
        ),
        figure("steps of the traces that are not in the page", lost, "steps", 0, at_least=False),
    ]


# Asks the server for the traces and counts the steps that the page does not hold.
LOST_NODES = """async () => {
  const explorer = window.decodingExplorer;
  let lost = 0;
  for (let i = 0; i < explorer.lanes.length; i++) {
    const trace = await explorer.call("explorer_trace", { run: explorer.run, lane: i });
    lost += Math.abs(trace.steps.length - explorer.lanes[i].count);
  }
  return lost;
}"""
