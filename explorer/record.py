"""What a run is: its lanes' traces with their rows and views, and the answer to a pull.

Plain data and functions of it; who steps a run and who may ask for it is runs.py's matter.
"""

import copy
import time
from collections import deque
from dataclasses import dataclass, field, replace

from decoders.trace import Trace
from explorer.folds import Fold
from explorer.requests import Choice


@dataclass
class Record:
    """One lane of a run: its trace, one row of costs a step, and the views folded so far."""

    trace: Trace
    lane: object | None = None  # decoders.lane.Lane while it can still step
    rows: list[dict] = field(default_factory=list)
    folds: dict[str, Fold] = field(default_factory=dict)
    problem: str | None = None
    slots: int | None = None  # KV slots the lane held last, while it held any

    def fold(self, view: str) -> Fold:
        """The fold of one view, made when first asked for."""
        if view not in self.folds:
            self.folds[view] = Fold(view, self.trace)
        return self.folds[view]


@dataclass
class Run:
    """State is running, paused, stopped, done or failed; `due`: the lanes that still step in this turn."""

    id: str
    session: str
    records: list[Record]
    state: str = "paused"
    due: deque = field(default_factory=deque)
    heard: float = field(default_factory=time.monotonic)
    waiters: list = field(default_factory=list)  # (loop, asyncio.Event) of pulls that wait for news
    hungry: bool = True  # the page has painted all there is and waits for more
    stepped: float = 0.0
    models: Choice | None = None  # what its lanes were made with; None for the app's own
    asked: dict = field(default_factory=dict)  # prompt, max_new_tokens and chat as a person gave them

    def open_lanes(self) -> list[Record]:
        """The lanes that can still step."""
        return [record for record in self.records if record.lane is not None]

    def lane(self, index: int) -> Record:
        """The lane counted from 0. ValueError with one sentence if the run has none such."""
        if not 0 <= index < len(self.records):
            raise ValueError(f"There is no lane {index + 1} in this run; choose one that was decoded.")
        return self.records[index]

    def changed(self) -> None:
        """Wakes the pulls that wait."""
        waiters, self.waiters = self.waiters, []
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)


def answer(run: Run, cursors: list[dict]) -> dict:
    """The new ops of the view on show, the new chips and cost rows, and the state of each lane."""
    lanes = []
    for record, cursor in zip(run.records, cursors, strict=False):
        count, trace = len(record.rows), record.trace
        fold, text = record.fold(cursor["view"]), record.fold("text")
        rows = [{**record.rows[i], "chips": text.ops(i)} for i in range(max(0, cursor["rows"]), count)]
        lane = {
            "view": cursor["view"],
            "from": cursor["ops"],
            "ops": [fold.ops(i) for i in range(max(0, cursor["ops"]), count)],
            "rows_from": cursor["rows"],
            "rows": rows,
            "count": count,
            "badge": trace.badge,
            "ended": trace.ended if record.lane is None else None,
            "problem": record.problem or fold.problem,
        }
        if cursor["ops"] <= 0:
            lane["head"] = fold.head
        if cursor["rows"] <= 0:
            lane["text_head"] = text.head
        lanes.append(lane)
    return {"run": run.id, "state": run.state, "lanes": lanes, "now": time.time()}


def still(trace: Trace) -> Trace:
    """A copy that does not grow with its lane; steps never change once they are there."""
    costs = copy.deepcopy(trace.costs)
    return replace(trace, vocabulary=dict(trace.vocabulary), steps=list(trace.steps), costs=costs)


def held(lane) -> int | None:
    """KV slots that a lane holds in the target's cache, the prompt's and those of its further views included;
    None if it cannot tell.
    """
    scorers = getattr(lane, "scorers", {})
    own = getattr(scorers.get("target"), "used", None)
    views = [one for one in scorers.values() if getattr(one, "counts_as", None) == "target"]
    return None if own is None else own + sum(view.used for view in views)
