"""Comparing: how the lanes of a run stand to each other, for the page's marks and for the tab's components.

Knows runs and `visualizers.analysis.comparison`, nothing of how it looks.
"""

import asyncio

from explorer.export.comparison import marks
from explorer.page_requests import Compare
from explorer.runs.model_pool import Loader
from explorer.runs.run_state import Run
from explorer.runs.scheduler import Runs
from explorer.runs.validation import as_json
from visualizers.analysis.comparison import compare


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_compare(request: Compare) -> str:
        """Lanes of a run, `{run, lanes: [{lane, number, shown}]}`: which lane, what the page calls it, how
        many of its steps count. See
        explorer.export.comparison.marks.
        """

        async def found() -> dict:
            run = runs.find(request.run)
            lanes = [(one.lane, one.number, one.shown) for one in request.lanes]
            if len({lane[1] for lane in lanes}) < len(lanes):
                raise ValueError("Two lanes have the same number; reload the page.")
            return marks(await asyncio.to_thread(compared, run, lanes))

        return await as_json(found())

    return [explorer_compare]


def compared(run: Run, lanes: list[tuple[int, int, int]]) -> dict:
    """The comparison of `lanes`, (lane, what it is called, shown steps) each, which the run remembers.

    KV slots are told where all steps are shown: they are those that the lane holds now.
    """
    key = (lanes, [(len(record.rows), record.trace.ended) for record in run.records])
    before, answer = run.comparison
    if before != key:
        records = [run.lane(lane) for lane, _, _ in lanes]
        counts = [min(shown, len(r.rows)) for r, (_, _, shown) in zip(records, lanes, strict=True)]
        slots = [r.slots if count == len(r.rows) else None for r, count in zip(records, counts, strict=True)]
        answer = compare([r.trace for r in records], counts, slots, [called for _, called, _ in lanes])
        run.comparison = (key, answer)
    return answer
