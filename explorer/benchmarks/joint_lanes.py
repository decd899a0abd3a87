"""Measures batching across lanes: lanes decoded together against the same lanes one after another.

Both go through one scheduler, whose single thread decodes all lanes as in the app, with one torch thread and
with tracing on. (If each run had a thread of its own, a GPU's libraries would be initialised again for each.)
Times are wall-clock seconds after a warm-up. In single precision and above a lane must write the same tokens
either way. In half precision ties may break differently, since rounding depends on the number of rows in a
forward.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from explorer.runs.load_pair import load_models
from explorer.runs.validation import RunRequest, check
from explorer.timing import NEW_TOKENS, PROMPTS, figure

if TYPE_CHECKING:
    from explorer.runs.scheduler import Runs

LANES, ROUNDS = 4, 7
SINGLE = 4  # bytes of a number in single precision
HEARD = 1e9  # seconds: no page polls these runs, and they must not be paused for that


def joint(options: argparse.Namespace) -> Iterator[dict]:
    """Four lanes together against one after another, and what a single lane pays for being able to pause."""
    import torch

    from explorer.runs import scheduler

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    prompts = [models["target"].encode(text) for text in PROMPTS[:LANES]]
    before, threads = scheduler.UNHEARD_SECONDS, torch.get_num_threads()
    scheduler.UNHEARD_SECONDS = HEARD
    torch.set_num_threads(1)
    runs = scheduler.Runs(lane_of(models, prompts))
    try:
        for strategy in ("greedy", "sample", "speculative"):
            name = f"{LANES} {strategy} lanes together against one after another"
            gain = statistics.median(gains(runs, strategy, models["target"].model.dtype.itemsize >= SINGLE))
            yield figure(name, gain, "x", 2.0 if strategy == "greedy" else None, at_least=True)
        alone = statistics.median(burdens(models, prompts))
        yield figure("a single lane that can pause against one that cannot", alone, "x", 0.97, at_least=True)
    finally:
        runs.close()
        scheduler.UNHEARD_SECONDS = before
        torch.set_num_threads(threads)


def gains(runs: "Runs", strategy: str, exact: bool) -> list[float]:
    """The speed-up of decoding the lanes together, for each round. Raises ValueError if they then write other
    tokens although rounding cannot be the cause (`exact`).
    """
    lanes, ratios = list(range(LANES)), []
    decoded(runs, strategy, lanes)
    for _ in range(ROUNDS):
        apart, outputs = timed(lambda: [text for lane in lanes for text in decoded(runs, strategy, [lane])])
        together, same = timed(lambda: decoded(runs, strategy, lanes))
        if outputs != same and exact:
            raise ValueError(f"{strategy} lanes wrote other tokens together than alone.")
        ratios.append(apart / together)
    return ratios


def burdens(models: dict, prompts: list[list[int]]) -> list[float]:
    """The speed of a greedy lane that can pause for other lanes, relative to one that cannot, for each round;
    there are no other lanes.
    """
    from decoders.callbacks import Callbacks
    from decoders.lane import Lane, Limits
    from explorer.runs.slices import Sliced, pause

    def run(callbacks: Callbacks) -> None:
        for prompt in prompts:
            lane = Lane("greedy", prompt, models, limits=Limits(NEW_TOKENS), callbacks=callbacks)
            step = Sliced(lane.run)
            while not step.resume():
                pass

    ratios = []
    for _ in range(ROUNDS):
        free, _ = timed(lambda: run(Callbacks()))
        waiting, _ = timed(lambda: run(Callbacks(pause=pause)))
        ratios.append(free / waiting)
    return ratios


def lane_of(models: dict, prompts: list[list[int]]) -> Callable[[RunRequest], list]:
    """A function that makes the one lane of a run; the seed in its request selects the prompt."""
    from decoders.lane import Lane, Limits
    from explorer.runs.callbacks import CALLBACKS

    def make(request: RunRequest) -> list[Lane]:
        (asked,) = request.lanes
        prompt, limits = prompts[asked.seed], Limits(NEW_TOKENS)
        return [Lane(asked.strategy, prompt, models, {}, asked.seed, limits, callbacks=CALLBACKS)]

    return make


def decoded(runs: "Runs", strategy: str, lanes: list[int]) -> list[list[int]]:
    """The tokens that these lanes write, each in a run of its own; returns when all are done."""
    wanted = [{"strategy": strategy, "parameters": {}, "seed": at} for at in lanes]
    request = {"prompt": "its tokens are above", "max_new_tokens": NEW_TOKENS}
    started = [runs.start(check(request | {"lanes": [lane]}), "") for lane in wanted]
    while any(run.state == "running" for run in started):
        time.sleep(0.001)
    return [record.trace.output() for run in started for record in run.records]


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """(wall-clock seconds, result) of calling `work`."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
