"""Which run is on screen, for Gradio's components: hidden components, one per tab, that the page's script
fills.

What follows the run stands in a column of class `follows(tab)`, takes `component(tab)` as an input, listens
to its `change` and asks `screen` what it means. The script (assets/web/page/on-screen.js) says something only
where it has changed, at most twice a second, while such a column can be seen: Gradio calls whatever listens,
in sight or not. Knows runs, no tab.
"""

from dataclasses import dataclass
from typing import Annotated

import gradio as gr
from pydantic import Field

from explorer.page_requests import Session, Shown
from explorer.runs.run_state import Record, Run
from explorer.runs.scheduler import GONE, Runs
from explorer.runs.validation import MAX_LANES
from explorer.schema import Asked, Name, parsed, read

FILL = "if (window.ExplorerPage) ExplorerPage.followRun((text) => {{ props.value = text; }}, '.{column}');"


class OnScreen(Asked):
    """What the component's value holds, as JSON text; `state`: that of the run, as the page knows it;
    `current`: whether the page's settings are still those of the run.
    """

    session: Session
    run: Name
    state: Name
    current: bool = True
    lanes: Annotated[list[Shown], Field(max_length=MAX_LANES)]


@dataclass(frozen=True)
class Lane:
    """A lane on screen: its place in the run, what the page calls it, how many of its steps are shown."""

    index: int
    number: int
    count: int
    record: Record

    @property
    def title(self) -> str:
        """What a person calls it: `2 Speculative decoding`."""
        return f"{self.number} {self.record.trace.title}"


@dataclass(frozen=True)
class Screen:
    """The run on screen and those of its lanes that have steps; `current`: see OnScreen."""

    run: Run
    lanes: list[Lane]
    current: bool

    @property
    def key(self) -> tuple:
        """What is equal as long as nothing that is on screen has changed."""
        lanes = [(lane.index, lane.number, lane.count, lane.record.trace.ended) for lane in self.lanes]
        return (self.run.id, self.current, *lanes)

    @property
    def drafting_lanes(self) -> list[Lane]:
        """Those that have drafted something."""
        return [lane for lane in self.lanes if lane.record.trace.costs.proposed]

    def drafting(self, wanted: int | None) -> Lane | None:
        """The lane that a person wants to look into, if it drafts, else the first that does."""
        lanes = self.drafting_lanes
        return next((lane for lane in lanes if lane.index == wanted), next(iter(lanes), None))


def follows(tab: str) -> str:
    """The class of the columns of a tab that follow the run."""
    return f"follows-{tab}"


def component(tab: str) -> gr.HTML:
    """The hidden component of a tab; its value is text that `screen` reads, empty until one of the tab's
    columns that follow the run can be seen.
    """
    fill = FILL.format(column=follows(tab))
    return gr.HTML(
        "", html_template="<i></i>", js_on_load=fill, visible="hidden", elem_id=f"explorer-on-screen-{tab}"
    )


def screen(runs: Runs, value: str) -> Screen | None:
    """What the component's value means; None while it is empty.

    ValueError with one sentence for nonsense, and for a run that is gone or another session's.
    """
    if not value:
        return None
    state = read(OnScreen, parsed(value.encode(errors="replace")))
    if not runs.belongs(state.run, state.session):
        raise ValueError(GONE)
    run = runs.find(state.run)
    if len({one.number for one in state.lanes}) < len(state.lanes):
        raise ValueError("Two lanes have the same number; reload the page.")
    lanes = []
    for one in state.lanes:
        record = run.lane(one.lane)
        lanes.append(Lane(one.lane, one.number, min(one.shown, len(record.rows)), record))
    return Screen(run, lanes, state.current)
