"""Compares the lanes of a run, for the marks that the page draws and for the section Compare."""

import asyncio

from decoders.refusal import Refusal
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
        """`{run, lanes: [{lane, number, shown}]}` gives the marks of `explorer.export.comparison.marks`.

        `number` is the lane's number on the page; of each lane, the first `shown` steps are compared.
        """

        async def compare_on_thread() -> dict:
            run = runs.find(request.run)
            lanes = [(one.lane, one.number, one.shown) for one in request.lanes]
            if len({lane[1] for lane in lanes}) < len(lanes):
                raise Refusal("Two lanes have the same number; reload the page.")
            return marks(await asyncio.to_thread(compare_lanes, run, lanes))

        return await as_json(compare_on_thread())

    return [explorer_compare]


def compare_lanes(run: Run, lanes: list[tuple[int, int, int]]) -> dict:
    """Compares `lanes`, each (index in the run, number on the page, steps shown), once for a run."""
    key = (lanes, [(len(record.rows), record.trace.ended) for record in run.records])
    before, answer = run.comparison
    if before != key:
        records = [run.lane(lane) for lane, _, _ in lanes]
        counts = [min(shown, len(r.rows)) for r, (_, _, shown) in zip(records, lanes, strict=True)]
        answer = compare([r.trace for r in records], counts, [number for _, number, _ in lanes])
        run.comparison = (key, answer)
    return answer
