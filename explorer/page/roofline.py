"""The server's side of "On another machine": what the lanes of a run would take on a device that a person
describes.

Knows runs and `visualizers.analysis.roofline`, nothing of how it looks.
"""

import asyncio
import json
import math
from dataclasses import asdict

from explorer.page.page_requests import Call, DeviceFigures, OtherMachine, SizeFigures
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Run, Runs
from explorer.runs.validation import said
from visualizers.analysis.roofline import (
    DEVICES,
    DRAFT,
    TARGET,
    WORDS,
    Device,
    Size,
    checked,
    other_machine,
    sentence,
)


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_machines(request: Call) -> str:
        """`{devices, target, draft, words}`: figures to begin from, and what each is called."""
        devices = {name: asdict(device) for name, device in DEVICES.items()}
        sizes = {"target": asdict(TARGET), "draft": asdict(DRAFT)}
        return json.dumps({"devices": devices, "words": WORDS, **sizes})

    async def explorer_other_machine(request: OtherMachine) -> str:
        """`{run, lanes: [{lane, number, shown}], device, target, draft}` gives `{sentence, lanes}`: each lane
        as `visualizers.analysis.roofline.other_machine` says.
        """

        async def answer() -> dict:
            device = checked(Device(**figures(request.device)))
            sizes = [checked(Size(**figures(size))) for size in (request.target, request.draft)]
            lanes = [(one.lane, one.number, one.shown) for one in request.lanes]
            return await asyncio.to_thread(answered, runs.find(request.run), lanes, device, *sizes)

        return await said(answer())

    return [explorer_machines, explorer_other_machine]


def figures(given: DeviceFigures | SizeFigures) -> dict[str, float]:
    """Numbers by their names; NaN for a field that holds none: `checked` refuses it."""
    return {name: math.nan if value is None else value for name, value in given.model_dump().items()}


def answered(run: Run, lanes: list[tuple[int, int, int]], device: Device, target: Size, draft: Size) -> dict:
    """The first steps of `lanes`, (lane, what it is called, shown steps) each, on `device`."""
    told = []
    for lane, called, shown in lanes:
        record = run.lane(lane)
        count = min(shown, len(record.rows))
        told.append({"lane": called} | other_machine(record.trace, count, device, target, draft))
    return {"sentence": sentence(device, target), "lanes": told}
