"""Tells Gradio's components which run is on screen, by one hidden component per tab that a script fills.

Components that follow the run are in a column of class `follows(tab)`; their events take `component(tab)` as
an input, listen to its `change`, and parse its value with `screen`. The script (assets/web/page/on-screen.js)
writes only when something has changed, at most twice a second, and only while such a column is visible, since
Gradio runs listeners whether they are visible or not.
"""

from dataclasses import dataclass
from typing import Annotated

import gradio as gr
from pydantic import Field

from decoders.refusal import Refusal
from explorer.page_requests import Session, Shown
from explorer.runs.run_state import Record, Run
from explorer.runs.scheduler import GONE, Runs
from explorer.runs.validation import MAX_LANES
from explorer.schema import Asked, Name, parsed, read

READING = "Reading the run on the page …"  # until the page has said which run it shows
NO_RUN = "no run"  # the component's value where the page shows none
FILL = "if (window.ExplorerPage) ExplorerPage.followRun((text) => {{ props.value = text; }}, '.{column}');"


class OnScreen(Asked):
    """The component's value, as JSON text.

    `state`: the state of the run, as the page knows it; `current`: whether the page's settings are still
    those of the run.
    """

    session: Session
    run: Name
    state: Name
    current: bool = True
    lanes: Annotated[list[Shown], Field(max_length=MAX_LANES)]


@dataclass(frozen=True)
class Lane:
    """A lane on screen: its index in the run, its number on the page, and how many of its steps are shown."""

    index: int
    number: int
    count: int
    record: Record

    @property
    def title(self) -> str:
        """The lane's title on the page: `2 Speculative decoding`."""
        return f"{self.number} {self.record.trace.title}"


@dataclass(frozen=True)
class Screen:
    """The run on screen and those of its lanes that have steps; `current`: see OnScreen."""

    run: Run
    lanes: list[Lane]
    current: bool

    @property
    def key(self) -> tuple:
        """A key that stays equal as long as nothing on screen has changed."""
        lanes = [(lane.index, lane.number, lane.count, lane.record.trace.ended) for lane in self.lanes]
        return (self.run.id, self.current, *lanes)

    @property
    def drafting_lanes(self) -> list[Lane]:
        """The lanes that have drafted something."""
        return [lane for lane in self.lanes if lane.record.trace.costs.proposed]

    def drafting(self, wanted: int | None) -> Lane | None:
        """The lane with index `wanted` if it drafts, otherwise the first one that does."""
        lanes = self.drafting_lanes
        return next((lane for lane in lanes if lane.index == wanted), next(iter(lanes), None))


def any_lane(seen: Screen | None, wanted: int | None) -> Lane | None:
    """The lane with index `wanted`, otherwise the first that drafts, or the first; None if there is none."""
    lanes = seen.lanes if seen else []
    chosen = next((one for one in lanes if one.index == wanted), None)
    return chosen or (seen.drafting(None) if seen else None) or next(iter(lanes), None)


def follows(tab: str) -> str:
    """The CSS class of the columns of a tab that follow the run."""
    return f"follows-{tab}"


def component(tab: str) -> gr.HTML:
    """Declares the hidden component of a tab. `screen` parses its value, which is empty until one of the
    tab's columns that follow the run becomes visible.
    """
    fill = FILL.format(column=follows(tab))
    return gr.HTML(
        "", html_template="<i></i>", js_on_load=fill, visible="hidden", elem_id=f"explorer-on-screen-{tab}"
    )


def screen(runs: Runs, value: str) -> Screen | None:
    """Parses the component's value; None while it is empty, and where the page shows no run.

    Raises Refusal with one sentence if it is malformed, or if the run is gone or of another session.
    """
    if value in ("", NO_RUN):
        return None
    state = read(OnScreen, parsed(value.encode(errors="replace")))
    if not runs.belongs(state.run, state.session):
        raise Refusal(GONE)
    run = runs.find(state.run)
    if len({one.number for one in state.lanes}) < len(state.lanes):
        raise Refusal("Two lanes have the same number; reload the page.")
    lanes = []
    for one in state.lanes:
        record = run.lane(one.lane)
        lanes.append(Lane(one.lane, one.number, min(one.shown, len(record.rows)), record))
    return Screen(run, lanes, state.current)
