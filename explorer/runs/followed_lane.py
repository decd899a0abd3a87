"""A lane that follows a trace file which another program writes anew while it grows, as vLLM's recorder does.

Nothing is decoded here: each step of the file becomes a step of the lane. Between two looks at the file the
lane waits like a lane whose server computes, so the worker does other work meanwhile.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from decoders.limits import AtLimit
from decoders.refusal import Refusal
from decoders.trace import trace
from decoders.trace.costs import Costs
from decoders.trace.events import Step
from decoders.trace.json_file import MAX_TRACE_BYTES
from decoders.trace.trace import Trace
from decoders.watch.vllm.folder import SILENT_SECONDS
from explorer.runs.slices import wait

LOOK_SECONDS = 1.0  # between two looks at a file, at least
SHARE = 4  # times as long as it took to read the file, nothing is read afterwards
TRIES = 5  # looks at a file that cannot be read, one after the other
STOPPED = "Following was stopped by hand; the request itself may go on."
SILENT = "Nothing was written to this request's file for {:.0f} seconds, so following ended."
REPLACED = "Following ended: the file now holds another trace."
Stamp = tuple[int, int]  # when a file was written, in nanoseconds, and its bytes
GONE = "Its file is gone or cannot be read; the folder keeps the newest requests."


class FollowedLane:
    """The lane of one file; `trace` grows as the file does. `found` and `written`: what `read` gives now."""

    reading = None  # as of all lanes: how far it has read a long text

    def __init__(self, path: Path, found: Trace, written: Stamp):
        self.path, self.written = path, written
        self.trace = replace(found, steps=[], ended=None, costs=Costs(), vocabulary={})
        self.steps: deque[Step] = deque()  # read and not yet shown
        self.held: list[Step] = []  # the last step of a trace that has ended, see `_take`
        self.taken = 0  # steps of the file before that one
        self.ended: str | None = None  # why the trace in the file has ended
        self.ending: str | None = None  # why the lane ends once all steps are shown
        self.failed, self.pause = 0, LOOK_SECONDS
        self._take(found)

    def advance(self) -> Step | None:
        """The next step, as soon as it is in the file; None if the lane ends without another."""
        try:
            while not self.steps and self.ending is None:
                self._look()
        except AtLimit:  # it is being stopped while it waits
            return None
        step = self.steps.popleft() if self.steps else None
        if step is not None:
            self.trace.append(step)
        if not self.steps:
            self.trace.ended = self.ending
        return step

    def close(self) -> None:
        """Ends the lane; may be called twice."""
        self.trace.ended = self.trace.ended or STOPPED

    def _look(self) -> None:
        """Waits for the next look at the file and takes what is new in it."""
        try:
            found, written, seconds = wait(later(self.pause, self._read))
        except Refusal as error:
            self.failed, self.pause = self.failed + 1, LOOK_SECONDS
            if self.failed == TRIES:
                self.ending = f"Following ended. {error}"
            return
        self.failed, self.pause, self.written = 0, max(LOOK_SECONDS, SHARE * seconds), written
        if found is None:
            self._settle()
        elif found.prompt != self.trace.prompt or len(found.steps) < self.taken:
            self.ending = REPLACED
        else:
            self._take(found)

    def _read(self) -> tuple[Trace | None, Stamp, float]:
        """The trace in the file (None if nothing was written), its stamp, and the seconds that it took."""
        begun = time.perf_counter()
        if stamp(self.path) == self.written:
            return None, self.written, 0.0
        return *read(self.path), time.perf_counter() - begun

    def _take(self, found: Trace) -> None:
        """Takes the steps that are new. The last one of a trace that has ended is held until the next look,
        since it may still get a note of what vLLM did afterwards.
        """
        new, self.ended = found.steps[self.taken :], found.ended
        self.held = new[-1:] if found.ended is not None else []
        self.taken = len(found.steps) - len(self.held)
        self.trace.vocabulary.update(found.vocabulary)
        self.steps.extend(new[: len(new) - len(self.held)])

    def _settle(self) -> None:
        """The file is as it was at the look before: a trace that has ended is complete."""
        self.steps.extend(self.held)
        self.held = []
        self.ending = self.ended or silence(self.written)


def read(path: Path) -> tuple[Trace, Stamp]:
    """The trace in a file, checked, and the stamp of the file. Raises Refusal with one sentence."""
    written = stamp(path)
    if written[1] > MAX_TRACE_BYTES:
        raise Refusal(f"The trace has become larger than {MAX_TRACE_BYTES >> 20} MiB.")
    try:
        return trace.load(path), written
    except OSError as error:
        raise Refusal(GONE) from error


def stamp(path: Path) -> Stamp:
    """When a file was written, in nanoseconds, and its bytes. Raises Refusal if it is gone."""
    try:
        stat = path.stat()
    except OSError as error:
        raise Refusal(GONE) from error
    return stat.st_mtime_ns, stat.st_size


def silence(written: Stamp) -> str | None:
    """The sentence that ends a lane whose file was not written for long; None for any other file."""
    return SILENT.format(SILENT_SECONDS) if time.time() - written[0] / 1e9 > SILENT_SECONDS else None


def later(seconds: float, work: Callable[[], Any]) -> Future:
    """The result of `work`, which is done in so many seconds on a thread of its own unless it is cancelled
    before.
    """
    future: Future = Future()

    def begin() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    timer = threading.Timer(seconds, begin)
    timer.daemon = True
    timer.start()
    return future
