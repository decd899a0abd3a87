"""The server's side of the page's microscope: which lanes of a run draft, and what is seen in one of them.

Knows runs and visualizers.microscope, nothing of how it looks.
"""

from explorer.loading import Loader
from explorer.requests import number, said
from explorer.runs import Runs
from visualizers.microscope import microscope


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.server_functions`."""

    async def explorer_microscope(request: dict) -> str:
        """`{run, lane}` gives `{drafting, lane, found}`: the lanes that draft, the one that is shown (`lane`,
        if it drafts, else the first), and what visualizers.microscope says of it, None if no lane drafts.
        """

        async def seen() -> dict:
            records = runs.find(request.get("run")).records
            wanted = request.get("lane")
            wanted = None if wanted is None else int(number(wanted))
            drafting = [i for i, record in enumerate(records) if record.trace.costs.proposed]
            lane = wanted if wanted in drafting else next(iter(drafting), None)
            shown = None if lane is None else microscope(records[lane].trace, len(records[lane].rows))
            return {"drafting": drafting, "lane": lane, "found": shown}

        return await said(seen())

    return [explorer_microscope]
