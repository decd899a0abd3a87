"""Microscope: the losslessness test, which compares many short continuations with the target's distribution.

A test runs in small slices on the worker thread that decodes for everybody, and ends when its page closes.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from decoders.refusal import Refusal
from explorer.page.branch import check_models_of_trace
from explorer.page.tabs import UNTRACKED
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import Lane, Screen, screen
from explorer.runs.callbacks import CALLBACKS
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs

SAMPLES, LENGTHS = (200, 1000, 4000), (2, 3, 4)
SLICE_SECONDS, SLICES = 0.1, 4  # length of a slice, after which other runs get a step; slices per redraw
AT_ONCE = 8  # tests of all visitors that can run at the same time; further ones wait
ABOUT = (
    "Many seeds are run, each a short continuation of the lane's prompt. The frequency of each continuation "
    "is compared with its exact probability under the target. The figure shows the total variation distance, "
    "Σ |share − probability| / 2. For an exact sampler it falls with the square root of the number of seeds, "
    "and stays below the dotted line in 99 of 100 tests. The broken verifier exists only here: after a "
    "rejection it samples from p instead of norm(max(p − q, 0))."
)
COMPUTING = "Computing the target's exact distribution …"
NO_LANE = "No lane on screen has drafted anything: run a speculative strategy in Decode, then start the test."
COLD = "The test needs a temperature above 0: at 0 every seed writes the same text."


def build(
    on_screen: gr.HTML, look: gr.HTML, lane: gr.Radio, subject: gr.State, runs: Runs, loader: Loader
) -> None:
    """Declares the section; a test ends when `subject`, the run and lane under the microscope, changes."""
    gr.Markdown(
        f"## Losslessness test: does the lane draw from the target's distribution?\n{ABOUT}",
        elem_id="losslessness",
    )
    with gr.Row():
        samples = gr.Radio([(f"{n:,}", n) for n in SAMPLES], value=1000, label="Seeds", min_width=260)
        length = gr.Radio(list(LENGTHS), value=3, label="Tokens per seed", min_width=160)
        temperature = gr.Number(1, label="Temperature", min_width=110)
        broken = gr.Checkbox(True, label="With the broken verifier", min_width=240)
        start = gr.Button("Start the test", variant="primary", size="md", scale=0, min_width=140)
        stop = gr.Button("Stop", size="md", scale=0, min_width=140, visible=False)
    says = gr.Markdown(elem_id="losslessness-says")
    with gr.Column(visible=False) as body:
        distance = captioned(wide=True)

    def buttons(counting: bool = False) -> dict:
        return {start: gr.Button(visible=not counting), stop: gr.Button(visible=counting)}

    def cleared() -> dict:
        return {says: "", body: gr.Column(visible=False)} | buttons()

    async def count_seeds(
        value: str,
        theme: str,
        wanted: int | None,
        samples: int,
        length: int,
        temperature: float,
        broken: bool,
    ) -> AsyncIterator[dict]:
        try:
            yield {says: COMPUTING, body: gr.Column(visible=False)} | buttons(counting=True)
            seen = screen(runs, value)
            one = seen.drafting(wanted) if seen else None
            test = await asyncio.to_thread(
                begin, runs, loader, seen, one, temperature, samples, length, broken
            )
            state = test.state()
            while state["done"] < state["samples"]:
                for _ in range(SLICES):
                    await asyncio.wrap_future(runs.on_worker(lambda: test.advance(SLICE_SECONDS)))
                state = test.state()
                yield {says: progress(state), body: gr.Column(visible=True)} | distance.updates(
                    figure(state, one.number, look_of(theme))
                )
            yield buttons()
        except Refusal as error:
            yield {says: escaped(str(error))} | buttons()

    counting = start.click(
        count_seeds,
        [on_screen, look, lane, samples, length, temperature, broken],
        [says, body, start, stop, distance.plot, distance.words],
        **UNTRACKED,
        concurrency_limit=AT_ONCE,
        api_visibility="private",
    )
    stop.click(buttons, None, [start, stop], cancels=[counting], api_visibility="private")
    subject.change(
        cleared,
        None,
        [says, body, start, stop],
        cancels=[counting],
        **UNTRACKED,
        api_visibility="private",
    )


def begin(
    runs: Runs,
    loader: Loader,
    seen: Screen | None,
    one: Lane | None,
    temperature: float | None,
    samples: int | None,
    length: int | None,
    broken: bool,
) -> Any:
    """Creates the requested test, not yet started. Refusal with one sentence if it is impossible."""
    if one is None:
        raise Refusal(NO_LANE)
    if samples is None or length is None:
        raise Refusal("Enter the number of seeds and the number of tokens per seed.")
    if not temperature or temperature < 0:
        raise Refusal(COLD)
    trace = one.record.trace
    if "temperature" not in trace.parameters or "do_sample" in trace.parameters:
        raise Refusal(
            f"{trace.title} does not draw its text from the target's distribution, so there is nothing to "
            "test."
        )
    models = check_models_of_trace(trace, loader.find(seen.run.models).wait())
    parameters = {**trace.parameters, "temperature": temperature}
    with_broken = broken and "draft" in models

    def make() -> Any:
        from decoders.speculative.losslessness import Proof  # torch is loaded by now

        same = (trace.strategy, trace.prompt, models, parameters)
        return Proof(*same, length, samples, with_broken, CALLBACKS)

    return runs.on_worker(make).result()


def figure(state: dict, number: int, look: str) -> Any:
    """The figure of the counts so far for the lane that the page calls `number`."""
    from visualizers.figures.losslessness import distance_to_target  # on demand: plotly is slow to import

    return distance_to_target(state, number, look)


def progress(state: dict) -> str:
    """The progress of a test and its results so far, as Markdown."""
    from visualizers.figures.charts import counted
    from visualizers.figures.losslessness import way_text

    done, samples = state["done"], state["samples"]
    seeds = f"{done:,} of {samples:,} seeds" if done < samples else f"{done:,} seeds"
    ways = [words for words in map(way_text, state["ways"]) if words]
    return "\n".join(
        [
            f"{seeds}, continuations in {counted(state['cells'], 'group')}.",
            "",
            *(f"- {escaped(words)}" for words in ways),
        ]
    )
