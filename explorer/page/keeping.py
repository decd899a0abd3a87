"""What a page keeps of its run, so that it can save it when the app is gone, and how it finds it again.

The traces go out in pieces of JSON text that the page only joins (assets/web/page/keep.js): what is joined is
the file that Save run makes. Knows runs and traces, nothing of how a page keeps them.
"""

import asyncio
import json
from dataclasses import replace
from itertools import islice

from decoders.trace.costs import Costs
from decoders.trace.trace import CHECKPOINT_EVERY, Trace, checkpoints
from explorer.export.foreign_traces import declarations, viewed
from explorer.export.run_file import settings
from explorer.page_requests import OfRun, Steps
from explorer.runs.model_pool import Loader
from explorer.runs.run_state import Run, still
from explorer.runs.scheduler import Runs
from explorer.runs.validation import as_json

MAX_EVENTS = 8000  # of all lanes in one answer: about a megabyte
PARTS = ("steps", "checkpoints", "vocabulary")  # of a trace's JSON form: these grow


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_steps(request: Steps) -> str:
        """`{run, since: [{steps, words}]}`, what the page has of each lane, gives `{setup, lanes, more}`: see
        `news`.
        """

        async def steps() -> dict:
            since = [(had.steps, had.words) for had in request.since]
            return await asyncio.to_thread(news, runs, runs.find(request.run), since)

        return await as_json(steps())

    async def explorer_again(request: OfRun) -> str:
        """`{run}` gives `{run, state, setup, declarations}`: what a page needs to show a run that it does not
        know, before it pulls.
        """

        async def again() -> dict:
            return await asyncio.to_thread(described, runs, runs.find(request.run))

        return await as_json(again())

    return [explorer_steps, explorer_again]


def news(runs: Runs, run: Run, since: list[tuple[int, int]]) -> dict:
    """What the traces of `run` have beyond `since`, (steps, words of the vocabulary) for each lane.

    `lanes`: as `piece` says; `more`: whether there is still more; `setup` only for a page that has nothing.
    """
    traces = stills(runs, run)[: len(since)]
    pieces, room = [], MAX_EVENTS
    for trace, (steps, words) in zip(traces, since, strict=False):
        pieces.append(piece(trace, steps, words, room))
        room -= sum(len(step.events) for step in trace.steps[steps : pieces[-1]["steps"]])
    more = any(len(trace.steps) > made["steps"] for trace, made in zip(traces, pieces, strict=True))
    first = {} if any(steps for steps, _ in since) else {"setup": {**settings(traces), **run.asked}}
    return {**first, "lanes": pieces, "more": more}


def piece(trace: Trace, steps: int, words: int, room: int) -> dict:
    """The JSON form of `trace` behind its first `steps` steps and `words` words, in about `room` events.

    `head` and each of `PARTS` are the text between the brackets; `steps` and `words` count what the page has
    then.
    """
    until = steps
    while until < len(trace.steps) and room > 0:
        room -= len(trace.steps[until].events)
        until += 1
    whole = replace(trace, steps=trace.steps[:until])
    if until < len(trace.steps):  # what stands at the end is not true yet
        whole.costs, whole.ended = Costs(), None
        for step in whole.steps:
            whole.costs.add(step)
    fresh = dict(islice(trace.vocabulary.items(), words, None))
    record = replace(whole, steps=whole.steps[steps:], vocabulary=fresh).to_json()
    crossed = any((step.index + 1) % CHECKPOINT_EVERY == 0 for step in whole.steps[steps:])
    record["checkpoints"] = [c for c in checkpoints(whole) if c["step"] >= steps] if crossed else []
    grown = {name: inside(record.pop(name)) for name in PARTS}
    counts = {"steps": until, "words": len(trace.vocabulary)}
    return {"head": inside(record), "grown": grown, **counts}


def inside(value: dict | list) -> str:
    """The JSON text of `value` without its brackets."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)[1:-1]


def described(runs: Runs, run: Run) -> dict:
    """See `explorer_again`."""
    traces = stills(runs, run)
    declared = declarations(traces)
    setup = viewed({**settings(traces), **run.asked}, declared, traces)
    return {"run": run.id, "state": run.state, "setup": setup, "declarations": list(declared.values())}


def stills(runs: Runs, run: Run) -> list[Trace]:
    """The run's traces as they stand between two steps, after lanes that were stopped have closed."""
    return runs.on_worker(lambda: [still(record.trace) for record in run.records]).result()
