"""Comparing: the server's side of the page's comparison of lanes.

Knows runs and `visualizers.analysis.comparison`, nothing of how it looks.
"""

import asyncio

from explorer.page.page_requests import Compare
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Run, Runs
from explorer.runs.validation import said
from visualizers.analysis.comparison import compare

MOST = 16  # answers that are kept, the newest


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""
    last: dict[str, tuple] = {}  # run -> (what was asked and had come, the answer): pages ask the same again

    async def explorer_compare(request: Compare) -> str:
        """Lanes of a run, `{run, lanes: [{lane, number, shown}]}`: which lane, what the page calls it, how
        many of its steps count. See visualizers.analysis.comparison.compare.
        """

        async def found() -> dict:
            run = runs.find(request.run)
            lanes = [(one.lane, one.number, one.shown) for one in request.lanes]
            if len({lane[1] for lane in lanes}) < len(lanes):
                raise ValueError("Two lanes have the same number; reload the page.")
            key = (lanes, [(len(record.rows), record.trace.ended) for record in run.records])
            before, answer = last.get(run.id, (None, None))
            if before != key:
                answer = await asyncio.to_thread(compared, run, lanes)
                last.pop(run.id, None)
                last[run.id] = (key, answer)
                for old in list(last)[:-MOST]:
                    del last[old]
            return answer

        return await said(found())

    return [explorer_compare]


def compared(run: Run, lanes: list[tuple[int, int, int]]) -> dict:
    """The comparison of `lanes`, (lane, what it is called, shown steps) each.

    KV slots are told where all steps are shown: they are those that the lane holds now.
    """
    records = [run.lane(lane) for lane, _, _ in lanes]
    counts = [min(shown, len(r.rows)) for r, (_, _, shown) in zip(records, lanes, strict=True)]
    slots = [r.slots if count == len(r.rows) else None for r, count in zip(records, counts, strict=True)]
    return compare([r.trace for r in records], counts, slots, [called for _, called, _ in lanes])
