"""Comparing: the server's side of the page's comparison of lanes.

Knows runs and `visualizers.comparison`, nothing of how it looks.
"""

from explorer.loading import Loader
from explorer.requests import number, said
from explorer.runs import Run, Runs
from visualizers.comparison import compare


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.server_functions`."""
    last: dict[
        str, tuple
    ] = {}  # run -> (what was asked, what had come, the answer): pages ask the same again

    async def explorer_compare(request: dict) -> str:
        """All lanes of a run, `{run, shown: [steps of each lane]}`: see visualizers.comparison.compare."""

        async def found() -> dict:
            run = runs.find(request.get("run"))
            shown = [int(number(count)) for count in request["shown"]]
            if len(shown) != len(run.records):
                raise ValueError("A comparison needs one number of steps for each lane.")
            key = (shown, [(len(record.rows), record.trace.ended) for record in run.records])
            if run.id not in last or last[run.id][0] != key:
                for gone in set(last) - set(runs.runs):
                    del last[gone]
                last[run.id] = (key, compared(run, shown))
            return last[run.id][1]

        return await said(found())

    return [explorer_compare]


def compared(run: Run, shown: list[int]) -> dict:
    """The comparison after `shown` steps of each lane; KV slots are those held when the lanes stand there."""
    counts = [min(count, len(record.rows)) for count, record in zip(shown, run.records, strict=True)]
    slots = [r.slots if n == len(r.rows) else None for r, n in zip(run.records, counts, strict=True)]
    return compare([record.trace for record in run.records], counts, slots)
