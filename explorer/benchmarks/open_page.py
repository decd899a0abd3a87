"""Measures a page that stays open, in headless Chromium: its memory over a thousand runs, and how soon
Microscope's first figure is there.
"""

import argparse
from collections.abc import Iterator

from explorer.benchmarks.page_latency import app, fresh_page, missing, set_up
from explorer.timing import figure

LOOKS, TOKENS = (100, 500, 1000), 8  # after so many runs; new tokens of each
LANES = ("beam", "speculative")  # those of a freshly opened page
GROWTH = 1.05  # goal: maximum ratio of memory after 500 more runs


def left_open(options: argparse.Namespace) -> Iterator[dict]:
    """JavaScript heap and elements of one page after 100 to 1,000 short runs of two lanes."""
    if rows := missing():
        yield from rows
        return
    heaps = {}
    with fresh_page() as page, app(options, page):
        set_up(page, LANES, TOKENS)
        devtools = page.context.new_cdp_session(page)
        for look in LOOKS:
            page.evaluate(AGAIN, look - max(heaps, default=0))
            devtools.send("HeapProfiler.collectGarbage")
            heaps[look] = devtools.send("Runtime.getHeapUsage")["usedSize"] / 2**20
            elements = devtools.send("Memory.getDOMCounters")["nodes"]
            name = f"JavaScript heap of the page after {look:,} runs"
            yield figure(name, heaps[look], "MB", None, False, elements=elements)
    growth = heaps[LOOKS[-1]] / heaps[LOOKS[-2]]
    name = f"JavaScript heap of the page after {LOOKS[-1]:,} runs against {LOOKS[-2]:,}"
    yield figure(name, growth, "x", GROWTH, False)


def first_figure(options: argparse.Namespace) -> Iterator[dict]:
    """Seconds from a press on *Microscope* to its first drawn figure, after a run, on a page that is open for
    a while.
    """
    if rows := missing():
        yield from rows
        return
    with fresh_page() as page, app(options, page):
        set_up(page, LANES, 40)
        page.evaluate(AGAIN, 1)
        page.wait_for_timeout(3000)  # so long a user looks at a run; meanwhile the page fetches Plotly
        page.get_by_role("tab", name="Microscope").click()
        seconds = page.evaluate(FIGURE)
        yield figure("from a press on Microscope to its first figure", seconds, "s", 1, False)


# Presses Run so many times, each time when the run before has ended and is drawn.
AGAIN = """async count => {
  const explorer = window.decodingExplorer, nap = () => new Promise(done => setTimeout(done, 5));
  const run = [...document.querySelectorAll("button")]
    .find(one => one.textContent.trim() === "Run" && one.offsetParent);
  for (let i = 0; i < count; i++) {
    while (run.disabled) await nap(); // also while the page's own first run is under way
    const before = explorer.run;
    run.click();
    while (explorer.run === before || explorer.state !== "done") await nap();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  }
}"""

# Seconds since the last press on a tab until a figure of the tab on show has been drawn.
FIGURE = """async () => {
  const began = performance.now();
  const pictures = () => [...document.querySelectorAll(".js-plotly-plot .main-svg")];
  const drawn = () => pictures().some(one => one.checkVisibility());
  while (!drawn()) {
    if (performance.now() - began > 60000) throw new Error("no figure was drawn");
    await new Promise(done => requestAnimationFrame(done));
  }
  return (performance.now() - began) / 1000;
}"""
