"""The state of a run: its lanes' traces with their rows and views, and the answer to a pull.

Plain data and functions of it; scheduler.py decides who steps a run and who may ask for it.
"""

import copy
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from decoders.model_defaults import listed
from decoders.refusal import Refusal
from decoders.registry import BADGES
from decoders.trace.events import Step
from decoders.trace.trace import Trace
from explorer.runs.breakpoints import Breakpoints
from explorer.runs.memory_sizes import step_bytes
from explorer.runs.offered_views import offered_views
from explorer.runs.slices import Sliced
from explorer.runs.validation import Choice
from explorer.runs.view_cache import Fold

PIECE_OPS = 8000  # changes of a lane's picture in one answer to a page; the rest comes in the next answer


@dataclass(frozen=True)
class RefusedLane:
    """Stands in a run for a lane that cannot run: a trace without a step, ended by the reason."""

    trace: Trace

    def run(self) -> Trace:
        """As a lane's: raises Refusal with the reason."""
        raise Refusal(self.trace.ended)


@dataclass
class Record:
    """One lane of a run: its trace, one row of costs per step, and the views folded so far."""

    trace: Trace
    lane: object | None = None  # decoders.lane.Lane while it can still step
    rows: list[dict] = field(default_factory=list)
    folds: dict[str, Fold] = field(default_factory=dict)
    problem: str | None = None
    step: Sliced | None = None  # the step in progress, also between two of its slices
    kept: int = 0  # approximate bytes of the trace and the rows
    depths: dict[int, list[int]] = field(default_factory=dict)  # decision depths, once asked for
    offered: list[str] | None = None  # its views, once it has ended and somebody has asked
    ends: tuple[int, ...] = ()  # tokens that end its text; none are known of an opened trace

    @classmethod
    def of(cls, lane: Any) -> "Record":
        """The record of a lane that was made, or that was refused."""
        if isinstance(lane, RefusedLane):
            return cls(lane.trace, problem=lane.trace.ended)
        return cls(lane.trace, lane, ends=tuple(getattr(lane, "eos", ())))  # a followed lane knows none

    @property
    def waits(self) -> bool:
        """Whether its step waits for a program or a server."""
        return self.step is not None and self.step.waits

    def views(self) -> list[str]:
        """The views that it offers after the steps so far; they are looked for once when it has ended."""
        if self.lane is not None:
            return offered_views(self.trace)
        if self.offered is None:
            self.offered = offered_views(self.trace)
        return self.offered

    def fold(self, view: str) -> Fold:
        """The fold of one view, made when first asked for."""
        return self.folds.get(view) or self.folds.setdefault(view, Fold(view, self.trace))

    def add(self, step: Step, row: dict) -> None:
        """Adds a step that the trace already has, with its row. Readers count the rows, so the row comes
        last.
        """
        self.kept += step_bytes(step)
        self.rows.append(row)

    @property
    def bytes(self) -> int:
        """The approximate size in memory."""
        return self.kept + sum(fold.bytes for fold in list(self.folds.values()))


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
    owed: bool = False  # whether it was pulled and has had no turn since
    models: Choice | None = None  # the models of its lanes; None for the app's own
    asked: dict = field(default_factory=dict)  # prompt, max_new_tokens and chat as the user gave them
    closing: int = 0  # lanes that are being stopped in the middle of a step and may still report part of it
    comparison: tuple = (None, {})  # the latest comparison of its lanes, after the key that says of what
    refused: list[str | None] = field(default_factory=list)  # for each lane why it could not begin
    breakpoints: Breakpoints = field(default_factory=lambda: Breakpoints(()))
    stopped: str | None = None  # why it was paused at a breakpoint, until it goes on

    @property
    def shown_state(self) -> str:
        """The state as the page should see it: ended only when nothing more will come."""
        return "running" if self.closing else self.state

    @property
    def bytes(self) -> int:
        """The approximate size in memory."""
        return sum(record.bytes for record in list(self.records))

    def open_lanes(self) -> list[Record]:
        """The lanes that can still step."""
        return [record for record in self.records if record.lane is not None]

    def lane(self, index: int) -> Record:
        """The lane counted from 0. Refusal with one sentence if the run has no such lane."""
        if not 0 <= index < len(self.records):
            raise Refusal(f"There is no lane {index + 1} in this run; choose one that was decoded.")
        return self.records[index]

    def changed(self) -> None:
        """Wakes the waiting pulls."""
        waiters, self.waiters = self.waiters, []
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)


def answer(run: Run, cursors: list[dict], max_ops: int | None = None, known: str = "") -> dict:
    """The new ops of the displayed view, the new chips and cost rows, and the state of each lane.

    max_ops: ops of a lane's picture, or chips, after which the rest waits for the next pull. `more` says that
    there is a rest; the state is then reported as the one that is `known`.
    """
    state, lanes, more = run.shown_state, [], False
    for record, cursor in zip(list(run.records), cursors, strict=False):
        count, trace = len(record.rows), record.trace
        fold, text = record.fold(cursor["view"]), record.fold("text")
        ops = steps_of(fold, cursor["ops"], count, max_ops)
        chips = steps_of(text, cursor["rows"], count, max_ops)
        first = max(0, cursor["rows"])
        more = more or max(0, cursor["ops"]) + len(ops) < count or first + len(chips) < count
        lane = {
            "view": cursor["view"],
            "from": cursor["ops"],
            "ops": ops,
            "rows_from": cursor["rows"],
            "rows": [{**record.rows[first + i], "chips": made} for i, made in enumerate(chips)],
            "count": count,
            "badge": badge(trace),
            "ended": trace.ended if record.lane is None else None,
            "problem": record.problem or fold.problem,
            "reading": record.lane and record.lane.reading,
            "views": record.views() if record.lane is None else None,
        }
        if cursor["ops"] <= 0:
            lane["head"] = fold.head
            lane["trust"] = trust_of(trace)
        if cursor["rows"] <= 0:
            lane["text_head"] = text.head
        lanes.append(lane)
    state = known if more and known else state
    shown = {"run": run.id, "state": state, "stopped": run.stopped, "more": more}
    return {**shown, "lanes": lanes, "now": time.time()}


def trust_of(trace: Trace) -> dict | None:
    """What the page says of an imported lane: `{trusted, sentence, report}`; None for all others."""
    if not trace.trust:
        return None
    from decoders.explain import trust as words  # few lanes need it
    from decoders.trace.trust import Trust

    trust = Trust.from_json(trace.trust)
    report = words.report(trust)
    return {
        "trusted": trust.trusted,
        "sentence": words.verdict(trust),
        "report": report[len(trust.faults) < 2 :],
    }


def badge(trace: Trace) -> dict[str, str] | None:
    """The badge of a lane and its explanation, `{text, title}`; None if its strategy has no badge."""
    if not trace.badge:
        return None
    sign = "≈" if trace.badge == "relaxed" else "✓"
    text, title = f"{sign} {trace.promise}", BADGES.get(trace.badge, "")
    if trace.promise != trace.badge:
        title = f"{trace.promise}. {title}"
    if trace.model_defaults:
        own = listed(trace.model_defaults)
        text += f", {own}"
        title += f". The model's own generation settings apply: {own}."
    return {"text": text, "title": title}


def steps_of(fold: Fold, first: int, count: int, max_ops: int | None) -> list[list[dict]]:
    """The ops of the steps from `first` up to `count`, or until there are `max_ops`; at least one step."""
    steps, size = [], 0
    for index in range(max(0, first), count):
        if max_ops is not None and steps and size >= max_ops:
            break
        steps.append(fold.ops(index))
        size += len(steps[-1])
    return steps


def snapshot_of(trace: Trace) -> Trace:
    """A copy that does not grow with its lane; recorded steps never change."""
    costs = copy.copy(trace.costs)
    for name, value in vars(costs).items():
        if isinstance(value, list | set | dict):
            setattr(costs, name, value.copy())
    return replace(trace, vocabulary=dict(trace.vocabulary), steps=list(trace.steps), costs=costs)
