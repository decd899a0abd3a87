"""The server's side of the page's microscope: which lanes of a run draft, and what is seen in one of them.

Knows runs and visualizers.analysis.speculation_report, nothing of how it looks.
"""

import asyncio

from explorer.page.page_requests import Microscope, WhatIf
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import said
from visualizers.analysis.draft_what_if import what_if
from visualizers.analysis.speculation_report import microscope

MAX_TEXT = 400  # characters


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_microscope(request: Microscope) -> str:
        """`{run, lane}` gives `{drafting, lane, found}`: the lanes that draft, the one that is shown (`lane`,
        if it drafts, else the first), and what visualizers.analysis.speculation_report says of it, None if no
        lane drafts.
        """

        async def seen() -> dict:
            records, wanted = runs.find(request.run).records, request.lane
            drafting = [i for i, record in enumerate(records) if record.trace.costs.proposed]
            lane = wanted if wanted in drafting else next(iter(drafting), None)
            shown = None
            if lane is not None:
                shown = await asyncio.to_thread(microscope, records[lane].trace, len(records[lane].rows))
            return {"drafting": drafting, "lane": lane, "found": shown}

        return await said(seen())

    async def explorer_what_if(request: WhatIf) -> str:
        """`{run, lane, widths: "3 2 1", stop_below}` gives what visualizers.analysis.draft_what_if says of
        such a draft.
        """

        async def found() -> dict:
            record, widths = runs.find(request.run).lane(request.lane), levels(request.widths)
            return await asyncio.to_thread(
                what_if, record.trace, len(record.rows), widths, request.stop_below
            )

        return await said(found())

    return [explorer_microscope, explorer_what_if]


def levels(text: str) -> list[int]:
    """The numbers in a text such as "3 2 1" or "3, 2, 1"; a text without any gives none."""
    found = text.replace(",", " ").split() if len(text) < MAX_TEXT else []
    return [int(one) for one in found] if all(one.isascii() and one.isdigit() for one in found) else []
