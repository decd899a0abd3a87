"""Main-thread time for a step of four lanes, drawn by the player and by `Plotly.react`: the same steps of the
same traces, in turn, in one browser.

Measures CPU time of script, style, layout and paint, so that other work on the machine counts little.
The time that Python takes to make the figures is left out.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.trace import Trace
from explorer.benchmarks.page_latency import LANES, NEW_TOKENS, fresh_page, missing
from explorer.runs.load_pair import load_models
from explorer.timing import PROMPTS

FIRST, STEPS = 8, 16  # the first step drawn, and how many in a row; a shorter lane stays at its last step

SIZES = """() => decodingExplorer.lanes.map(({ scene }) => {
  const { width, height } = scene.frame.getBoundingClientRect();
  return [width, height];
})"""
SEEK = """async step => {
  decodingExplorer.app.playback.seek(step, false);
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
}"""
REACT = """async figures => {
  await Promise.all(figures.map(({ data, layout }, i) => Plotly.react("lane" + i, data, layout)));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
}"""


def drawn_twice(options: argparse.Namespace) -> list[dict]:
    """A row each for the player and Plotly: milliseconds of the main thread per step."""
    if rows := missing():
        return rows
    traces = decoded(options)
    with tempfile.TemporaryDirectory() as home, fresh_page() as player:
        player.goto(written(Path(home), traces).as_uri())
        player.wait_for_function("window.decodingExplorer && window.decodingExplorer.drawn", timeout=60_000)
        sizes = player.evaluate(SIZES)
        plotly = player.context.browser.new_page(viewport=player.viewport_size)
        plotly.set_content(bare(sizes))
        plotly.wait_for_function("window.Plotly")
        spent = {"player": [], "Plotly.react": []}
        for step in range(FIRST, FIRST + STEPS):
            figures = [figure_of(trace, step, size) for trace, size in zip(traces, sizes, strict=True)]
            spent["player"].append(computing(player, SEEK, step))
            spent["Plotly.react"].append(computing(plotly, REACT, figures))
    return [row(name, sorted(times[1:])) for name, times in spent.items()]  # the first step is a warm-up


def row(name: str, times: list[float]) -> dict:
    """A row with median and 95th percentile; it has no goal, as it only shows which of the two is faster."""
    at = times[int(0.95 * (len(times) - 1))]
    measured = {"value": statistics.median(times), "unit": "ms", "goal": "none", "met": None}
    return {"name": f"a step of four lanes, {name} (95 %: {at:.0f} ms)", **measured, "at_95": at}


def decoded(options: argparse.Namespace) -> list[Trace]:
    """The traces of the lanes of `--only page`, after the first prompt."""
    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    prompt = models["target"].encode(PROMPTS[0])
    return [Lane(name, prompt, models, {}, limits=Limits(NEW_TOKENS)).run() for name in LANES]


def written(home: Path, traces: list[Trace]) -> Path:
    """Writes the saved page of these lanes, which the player draws without a server; returns its path."""
    from explorer.export.replay_page import replay_html

    path = home / "run.html"
    path.write_text(replay_html(traces), "utf-8")
    return path


def bare(sizes: list[list[float]]) -> str:
    """A page with Plotly's script and a place for each lane, as large as the player's."""
    from plotly.offline import get_plotlyjs

    places = [f'<div id="lane{i}" style="width:{w}px;height:{h}px"></div>' for i, (w, h) in enumerate(sizes)]
    return f"<script>{get_plotlyjs()}</script>{''.join(places)}"


def figure_of(trace: Trace, step: int, size: list[float]) -> dict:
    """A lane's figure after `step` steps, in the lane's size (width, height), as JSON for plotly.js."""
    view = strategies()[trace.strategy].views[0]
    made = trace.figure(view, min(step, len(trace.steps)))
    made.update_layout(width=size[0], height=size[1])
    return json.loads(made.to_json())


def computing(page, script: str, argument: object) -> float:
    """Milliseconds of CPU time that the page's main thread spends on this script."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def thread_time() -> float:
        known = devtools.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in known if one["name"] == "ThreadTime")

    began = thread_time()
    page.evaluate(script, argument)
    spent = thread_time() - began
    devtools.detach()
    return 1000 * spent
