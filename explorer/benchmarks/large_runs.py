"""Measures a large run as a user experiences it: four lanes of 512 new tokens with thousands of nodes each,
in headless Chromium.

The shipped models run with a longer context and without their end-of-text token, so that every lane decodes
512 tokens. Uses the page's test interface, `window.decodingExplorer`.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decoders.models.names import local, place, stored
from explorer.benchmarks.page_latency import READY, app, fresh_page, missing
from explorer.timing import figure

NEW_TOKENS, CONTEXT = 512, 640
MIN_NODES = 3000  # in every lane's tree
SCRUBS = 60
SETUP = {
    "prompt": "Once upon a time, Tim went to the park with his dog",
    "max_new_tokens": NEW_TOKENS,
    "lanes": [
        {"strategy": "beam", "parameters": {"num_beams": 8}, "view": "beam_tree"},
        {"strategy": "diverse_beam", "parameters": {"num_beams": 4}, "view": "beam_tree"},
        {"strategy": "speculative_tree", "parameters": {"widths": "4,2,2,1"}, "view": "draft_rounds"},
        {"strategy": "speculative_tree", "parameters": {"widths": "6,3,1,1"}, "view": "one_round"},
    ],
}


def big(options: argparse.Namespace) -> list[dict]:
    """Time from a slider move to the painted step, the longest main-thread tasks, and the page's memory."""
    if rows := missing():
        return rows
    with endless(options.model) as model, endless(options.draft) as draft:
        lengthened = argparse.Namespace(model=str(model), draft=str(draft))
        with fresh_page() as page, app(lengthened, page):
            page.wait_for_function(READY, timeout=60_000)
            page.evaluate(WATCH)
            page.evaluate("setup => decodingExplorer.app.applySetup(setup)", SETUP)
            page.get_by_role("button", name="Run", exact=True).click()
            page.wait_for_function("decodingExplorer.state === 'done'", timeout=900_000)
            page.wait_for_timeout(1000)
            running = page.evaluate("window.longest")
            page.evaluate("window.longest = 0")
            times = sorted(page.evaluate(SCRUB, SCRUBS))
            scrubbing = page.evaluate("window.longest")
            devtools = page.context.new_cdp_session(page)
            devtools.send("HeapProfiler.collectGarbage")
            heap = devtools.send("Runtime.getHeapUsage")["usedSize"] / 2**20
            nodes = page.evaluate(NODES)
    at = times[int(0.95 * (len(times) - 1))]
    median = statistics.median(times)
    return [
        figure("nodes in the smallest of four trees, 512 new tokens", min(nodes), "nodes", MIN_NODES, True),
        figure("from slider move to paint, 95th percentile", at, "ms", 60, False, median=median),
        figure("longest pause of the page while four lanes run", running, "ms", 200, False),
        figure("longest pause of the page while scrubbing", scrubbing, "ms", 200, False),
        figure("JavaScript heap of the page at the end", heap, "MB", 400, False),
    ]


@contextmanager
def endless(name: str) -> Iterator[Path]:
    """A temporary copy of a local model's folder with a longer context and an end-of-text token that never
    occurs.
    """
    where, _ = place(stored(local(name)))
    with tempfile.TemporaryDirectory() as home:
        copy = Path(shutil.copytree(where, Path(home) / Path(where).name))
        amend(copy / "config.json", max_position_embeddings=CONTEXT)
        padding = json.loads((copy / "config.json").read_text("utf-8")).get("pad_token_id")
        amend(copy / "generation_config.json", eos_token_id=padding)  # a token that is never generated
        yield copy


def amend(path: Path, **fields: Any) -> None:
    """Sets top-level fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


# Records the longest task of the main thread, in milliseconds, in window.longest.
WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver(list => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ entryTypes: ["longtask"] });
}"""

# Milliseconds from a slider move until all lanes have painted their step, for `count` random positions.
SCRUB = """async count => {
  const explorer = window.decodingExplorer, slider = explorer.app.bar.slider, times = [];
  const rest = time => new Promise(done => setTimeout(done, time));
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    slider.value = String(1 + Math.floor(Math.random() * (slider.max - 1)));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const waits = () => explorer.lanes.some(lane => lane.scene.paintedStep !== lane.shown - 1);
    while (waits() && performance.now() - began < 5000) await rest(1);
    times.push(Math.max(...explorer.lanes.map(lane => lane.scene.lastPaint)) - began);
    await rest(120);
  }
  return times;
}"""

# The number of nodes in each lane's tree in the page.
NODES = """() => decodingExplorer.lanes.map(lane =>
  new Set([...lane.scene.history.byId.values()].map(entry => entry.base.node)
    .filter(node => node >= 0)).size)"""
