"""Runs: what users have started, one to four lanes each, stepped fairly by one worker thread.

A run is known only by its unguessable id. Nothing is pushed: the page pulls from a cursor, so a slow page
loses nothing, and no run waits for a page to paint. A run that nobody pulls pauses, at once if its page says
that it is closing, and continues when it is pulled again. A long step is interrupted in the middle
(slices.py). The memory of all runs is bounded (kept.py).
"""

import asyncio
import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from decoders.refusal import Refusal
from decoders.trace.breakpoints import Condition, parse_all
from decoders.trace.trace import Trace
from explorer.off_loop import soon
from explorer.runs import kept, stepping
from explorer.runs.breakpoints import Breakpoints
from explorer.runs.run_state import PIECE_OPS, Record, Run, answer, snapshot_of
from explorer.runs.slices import SLICE_SECONDS, Sliced
from explorer.runs.validation import MAX_LANES, Choice, RunRequest
from explorer.runs.view_cache import row

MAX_RUNS = 128  # in the whole process; the oldest run that is not running makes room
MAX_RUNS_PER_SESSION = 3  # per page; its oldest run makes room
TOGETHER_SECONDS = 0.05  # the steps of one press on Step are answered together unless they take longer
UNHEARD_SECONDS = 1.8  # a run that nobody has pulled for this long pauses: its page is gone or very slow
FORGET_SECONDS = 12 * 3600.0  # ... and is dropped after this long, however much memory there is
MEMORY_CHECK_SECONDS = 0.5  # between two checks of the memory of all runs
GONE = (
    "This run is gone: the app keeps a limited number of runs, and newer ones took its place. What is on "
    "screen stays; press Run to decode again."
)
# Fields of a request that a run keeps as the user gave them.
ASKED = ("prompt", "max_new_tokens", "chat", "stop_when")
FULL = f"A run has at most {MAX_LANES} lanes: remove one with ×, then branch again."


class NoLane(Refusal):
    """None of the lanes of a run can run; `reasons`: why, lane by lane."""

    def __init__(self, reasons: list[str]):
        super().__init__(reasons[0] if len(reasons) == 1 else "No lane can run: each says why.")
        self.reasons = reasons


class Runs:
    """All runs of the process. `make_lanes(request)` makes the lanes of a request or raises Refusal."""

    def __init__(self, make_lanes: Callable[[RunRequest], list]):
        self.make_lanes = make_lanes
        self.runs: dict[str, Run] = {}
        self.order: deque[str] = deque()  # whose turn it is
        self.wake = threading.Condition()
        self.jobs: deque[tuple[Sliced, Future]] = deque()  # everything else that only the worker may do
        self.worker: threading.Thread | None = None
        self.memory_checked = 0.0  # when the memory of all runs was last checked
        self.closed = False

    def start(self, request: RunRequest, session: str, state: str = "running") -> Run:
        """Starts a run.

        A lane that cannot run says so in its place, and the others run. Raises `NoLane` if no lane can run,
        Refusal with one sentence if there is no room or are no models.
        """
        asked = {name: getattr(request, name) for name in ASKED}
        make, breakpoints = lambda: self.make_lanes(request), Breakpoints(parse_all(request.stop_when))
        return self.begin(make, session, asked, state, request.models, breakpoints)

    def begin(
        self,
        make: Callable[[], list],
        session: str,
        asked: dict,
        state: str = "running",
        models: Choice | None = None,
        breakpoints: Breakpoints | None = None,
    ) -> Run:
        """Starts a run of the lanes that `make` makes on the worker. Raises as `start`."""
        with self.wake:
            self._make_room(session)
        lanes = self.on_worker(make).result()
        records = [Record.of(lane) for lane in lanes]
        refused = [record.problem for record in records]
        if all(refused):
            raise NoLane(refused)
        run = Run(secrets.token_urlsafe(18), session, records, state, models=models, refused=refused)
        run.asked = {name: asked[name] for name in ASKED if name in asked}
        run.breakpoints = breakpoints or run.breakpoints
        with self.wake:
            self._enter(run)
            if state == "paused":
                run.due.extend(run.open_lanes())
            self.wake.notify()
        return run

    def show(
        self, traces: list[Trace], session: str = "", run_id: str | None = None, asked: dict | None = None
    ) -> Run:
        """Adds a finished run made of stored traces. `run_id` gives it a public name."""
        records = [Record(trace) for trace in traces]
        for record in records:
            costs = type(record.trace.costs)()
            for step in record.trace.steps:
                costs.add(step)
                record.add(step, row(costs, step.seconds, None))
        run = Run(run_id or secrets.token_urlsafe(18), session, records, "done")
        run.asked = {name: asked[name] for name in ASKED if name in asked} if asked else {}
        with self.wake:
            if run_id is None:
                self._make_room(session)
            self._enter(run)
        return run

    def add_lane(self, run: Run, make: Callable[[], object], replace: int | None = None) -> int:
        """Makes a lane on the worker and adds it to `run`, at the end or in place of lane `replace`.

        Returns its index. The other lanes stay unchanged. Refusal if the run is full.
        """
        self._room_for_lane(run, replace)
        lane = self.on_worker(make).result()
        with self.wake:
            try:
                self._room_for_lane(run, replace)
            except Refusal:  # another lane came in the meantime
                self._later(lane.close)
                raise
            record = Record.of(lane)
            if replace is None:
                run.records.append(record)
            else:
                old, run.records[replace] = run.records[replace], record
                self._close_lane(run, old)
            if run.state == "paused":
                run.due.append(record)  # the tokens that it begins with are shown at once
            else:
                run.state = "running"
            run.heard = time.monotonic()
            run.changed()
            self.wake.notify()
            return len(run.records) - 1 if replace is None else replace

    def _room_for_lane(self, run: Run, replace: int | None) -> None:
        if replace is None and len(run.records) >= MAX_LANES:
            raise Refusal(FULL)
        if replace is not None and not 0 <= replace < len(run.records):
            raise Refusal(f"There is no lane {replace + 1} to replace.")

    def control(self, run_id: str, action: str) -> Run:
        """Applies pause, resume, step (every unfinished lane once, then pause) or stop, or Refusal."""
        run = self.find(run_id)
        with self.wake:
            if run.state not in ("running", "paused"):
                return run
            if action == "pause":
                run.state = "paused"
                run.due.clear()
            elif action == "resume":
                run.state = "running"
            elif action == "step":
                run.state = "paused"
                run.due = deque(run.open_lanes())
            elif action == "stop":
                run.state = "stopped"
                self._close(run)
            else:
                raise Refusal(f"A run cannot {action!r}; it can pause, resume, step and stop.")
            run.stopped = None
            run.heard = time.monotonic()
            run.changed()
            self.wake.notify()
        return run

    def stop_when(self, run: Run, conditions: Sequence[Condition]) -> None:
        """Gives a run other breakpoints, from its next step on."""
        with self.wake:
            run.breakpoints = Breakpoints(conditions)
            run.asked["stop_when"] = tuple(map(str, conditions))

    def snapshot(self, run: Run) -> list[Trace]:
        """The run's traces between two steps; the copies do not change while the run continues."""
        if run.open_lanes():
            return self.on_worker(lambda: [snapshot_of(record.trace) for record in run.records]).result()
        return [record.trace for record in run.records]

    def leave(self, session: str) -> None:
        """The page of this session is closing: its runs pause from now on, unless they are pulled again."""
        with self.wake:
            for run in self.runs.values():
                if session and run.session == session:
                    run.heard = min(run.heard, time.monotonic() - UNHEARD_SECONDS)
                    run.owed = False

    def drop(self, run_id: str) -> None:
        """Ends the run, if it still exists, and forgets it."""
        with self.wake:
            if run_id in self.runs:
                self._drop(self.runs[run_id])
                self.wake.notify()

    def belongs(self, run_id: object, session: object) -> bool:
        """Whether this session may ask for the run: its own, a public one, or one that does not exist."""
        run = self.runs.get(run_id) if isinstance(run_id, str) else None
        return run is None or not run.session or run.session == session

    def find(self, run_id: object) -> Run:
        """The run with this id. Refusal if there is none or it was dropped."""
        run = self.runs.get(run_id) if isinstance(run_id, str) else None
        if run is None:
            raise Refusal(GONE)
        return run

    def on_worker(self, job: Callable) -> Future:
        """Runs `job` on the worker between two steps."""
        future: Future = Future()
        with self.wake:
            if self.closed:
                raise Refusal("The app is shutting down.")
            if self.worker is None:
                self.worker = threading.Thread(target=self._work, name="decoding", daemon=True)
                self.worker.start()
            self.jobs.append((Sliced(job), future))
            self.wake.notify()
        return future

    async def pull(self, run_id: str, cursors: list[dict], wait: float = 1.0, known: str = "") -> dict:
        """Returns what is new since `cursors`, one `{view, ops, rows}` per lane: how much the page has.

        Lanes without a cursor, which were added after the page asked, are left out; so is everything beyond
        `PIECE_OPS`, see `answer`. Answers as soon as there is news (in single steps, of all lanes) or the
        state is no longer `known`, at the latest after `wait` seconds.
        """
        run = self.find(run_id)
        if len(cursors) > len(run.records) or not all(isinstance(c, dict) for c in cursors):
            raise Refusal("A pull needs one cursor for each lane.")
        run.heard = time.monotonic()  # not again while it waits: the client may be gone by then
        run.owed = True
        until = run.heard + min(max(wait, 0.0), 5.0)
        while True:
            event = asyncio.Event()
            with self.wake:
                run.waiters.append((asyncio.get_running_loop(), event))
                self.wake.notify()
            pairs = zip(run.records, cursors, strict=False)
            news = any(len(r.rows) > min(c["ops"], c["rows"]) for r, c in pairs)
            if more := news and run.due and run.state == "paused":
                until = min(until, time.monotonic() + TOGETHER_SECONDS)
            if (not more and (news or run.shown_state != known)) or time.monotonic() >= until:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), until - time.monotonic())
        run.waiters = [w for w in run.waiters if w[1] is not event]
        return await soon(answer, run, cursors, PIECE_OPS, known)

    def close(self) -> None:
        """Stops the worker and closes all lanes."""
        with self.wake:
            for run in self.runs.values():
                self._close(run)
            self.closed = True
            self.wake.notify()
        if self.worker is not None:
            self.worker.join(timeout=10)

    # The methods below are called with the lock held, or by the worker.

    def _enter(self, run: Run) -> None:
        self.runs[run.id] = run
        self.order.append(run.id)

    def _close(self, run: Run) -> None:
        run.due.clear()
        for record in run.open_lanes():
            self._close_lane(run, record)

    def _close_lane(self, run: Run, record: Record) -> None:
        lane, record.lane = record.lane, None
        if lane is None:
            return
        halfway = record.step is not None
        run.closing += halfway

        def close() -> None:
            stepping.end(record, lane)
            with self.wake:
                run.closing -= halfway
                run.changed()

        self._later(close)

    def _later(self, job: Callable) -> None:
        self.jobs.append((Sliced(job), Future()))

    def _drop(self, run: Run) -> None:
        self._close(run)
        run.state = "stopped" if run.state in ("running", "paused") else run.state
        self.runs.pop(run.id, None)
        self.order = deque(i for i in self.order if i != run.id)
        run.changed()

    def _make_room(self, session: str) -> None:
        mine = [run for run in self.runs.values() if run.session == session and session]
        for run in mine[: max(0, len(mine) - MAX_RUNS_PER_SESSION + 1)]:
            self._drop(run)
        others = [run for run in self.runs.values() if run.session]
        if len(others) < MAX_RUNS:
            return
        quiet = [run for run in others if self._quiet(run)]
        if not quiet:
            raise Refusal(
                f"{MAX_RUNS} runs are in progress already; wait until one has ended, then press Run again."
            )
        self._drop(min(quiet, key=lambda run: run.heard))

    def _unheard(self, run: Run) -> bool:
        """Whether the page of a run seems to be gone; a pulled run still gets its turn, however late."""
        return time.monotonic() - run.heard >= UNHEARD_SECONDS and not run.owed

    def _forget(self) -> None:
        """Drops runs that nobody has asked for in a very long time, and runs for which there is no memory."""
        now = time.monotonic()
        if now - self.memory_checked < min(MEMORY_CHECK_SECONDS, FORGET_SECONDS):
            return
        self.memory_checked = now
        for run in list(self.runs.values()):
            if run.session and now - run.heard > FORGET_SECONDS:
                self._drop(run)
        quiet = [run for run in self.runs.values() if run.session and self._quiet(run)]
        gone, ending = kept.runs_to_drop(self.runs.values(), quiet, now)
        for run in gone:
            self._drop(run)
        if ending is not None:
            for record in ending.open_lanes():
                record.problem = kept.CROWDED
            ending.state = "stopped"
            self._close(ending)
            ending.changed()

    def _quiet(self, run: Run) -> bool:
        """Whether a run may make room for others: nothing is being computed for it."""
        return run.state != "running" or self._unheard(run)

    def _work(self) -> None:
        while True:
            with self.wake:
                self._forget()
                run = self._next()
                if run is None and self._idle() and not self.closed:
                    self.wake.wait(timeout=1.0)
                if self.closed and self._idle():
                    return
            self._serve()
            if run is not None:
                self._take_turn(run)

    def _idle(self) -> bool:
        """Whether no job can be worked on now."""
        return all(job.waits for job, _ in self.jobs)

    def _serve(self) -> None:
        """Works on the waiting jobs for about a slice; a longer one is continued after the others."""
        until = time.monotonic() + SLICE_SECONDS
        for _ in range(len(self.jobs)):
            job, future = self.jobs.popleft()
            if job.waits:
                self.jobs.append((job, future))
                continue
            if not future.running() and not future.set_running_or_notify_cancel():
                continue  # its caller no longer waits
            try:
                if job.resume():
                    future.set_result(job.result)
                else:
                    self._wake_after(job)
                    self.jobs.append((job, future))
            except BaseException as error:
                future.set_exception(error)
            if time.monotonic() >= until:
                break

    def _next(self) -> Run | None:
        """The next run that has a lane to step."""
        for _ in range(len(self.order)):
            run = self.runs[self.order[0]]
            self.order.rotate(-1)
            if not self._unheard(run) and self._due(run) is not None:
                return run
        return None

    def _due(self, run: Run) -> Record | None:
        """The run's next lane to step; None if it has none. The lanes of a run take turns; those that wait
        for a program or a server are passed over until it has answered.
        """
        run.due = deque(record for record in run.due if record.lane is not None)
        if run.state == "running" and all(record.waits for record in run.due):
            run.due.extend(r for r in run.open_lanes() if not any(r is other for other in run.due))
        for _ in range(len(run.due)):
            if not run.due[0].waits:
                return run.due[0]
            run.due.rotate(-1)
        return None

    def _take_turn(self, run: Run) -> None:
        """Steps the run's lanes for about a slice: they finish the steps that wait for a forward and begin
        the next ones. A lane waits where its forward can be batched with those of others, which all have had
        their turn by the time of its next one.
        """
        until, stepped = time.monotonic() + SLICE_SECONDS, set()
        while time.monotonic() < until:
            with self.wake:
                record, in_company = self._due(run), self._in_company(run)
            if record is None or id(record) in stepped:
                return
            begins = record.step is None
            self._advance(run, record, in_company)
            if begins or record.step is not None:
                stepped.add(id(record))

    def _in_company(self, run: Run) -> bool:
        """Whether any lane other than the due one may ask for a forward before the due lane's next turn."""
        if len(run.due) > 1 or (run.state == "running" and len(run.open_lanes()) > 1):
            return True
        others = (other for other in self.runs.values() if other is not run)
        return any((other.due or other.state == "running") and not self._unheard(other) for other in others)

    def _wake_after(self, work: Sliced) -> None:
        """Lets the worker know when interrupted work can go on."""
        if work.awaited is not None:
            work.awaited.add_done_callback(self._wake_up)

    def _wake_up(self, _: Future) -> None:
        with self.wake:
            self.wake.notify()

    def _advance(self, run: Run, record: Record, in_company: bool) -> None:
        """Works on one lane's step for a slice, on the worker's thread."""
        lane = record.lane
        if lane is None:  # closed since it was chosen
            return
        steps = len(record.rows)
        over = stepping.resume(record, lane, in_company)
        stopped = run.breakpoints.after(run.records, record) if len(record.rows) > steps else None
        with self.wake:
            if run.due and run.due[0] is record:  # otherwise it was paused, stepped or closed in the meantime
                run.due.popleft()
                if not over:
                    run.due.append(record)
            if not over:
                self._wake_after(record.step)
                return
            if record.problem or record.trace.ended is not None:
                self._close_lane(run, record)
            if stopped and run.state in ("running", "paused"):
                run.state, run.stopped = "paused", stopped
                run.due.clear()
            run.owed = run.owed and bool(run.due)
            if run.state in ("running", "paused") and not run.open_lanes():
                failed = all(r.problem for r in run.records)
                run.state = "failed" if failed else "done"
            run.changed()
