"""Breakpoints: gives a run the breakpoints of the page, and says at which steps they hold."""

import asyncio

from decoders.trace.breakpoints import parse_all
from explorer.page_requests import StopWhen
from explorer.runs.breakpoints import stops_of
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import as_json


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_stop_when(request: StopWhen) -> str:
        """`{run, stop_when}` gives `{stop_when, lanes}`: the conditions as they are written, and lane by lane
        the steps at which they hold. Without a run they are only read.
        """

        def stop() -> dict:
            conditions = parse_all(request.stop_when)
            read = {"stop_when": [str(condition) for condition in conditions], "lanes": []}
            if request.run is None:
                return read
            run = runs.find(request.run)
            if run.open_lanes():
                runs.stop_when(run, conditions)
            return read | {"lanes": stops_of(list(run.records), conditions)}

        return await as_json(asyncio.to_thread(stop))

    return [explorer_stop_when]
