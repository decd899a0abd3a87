"""Time slices on one thread: long work is interrupted where it is and resumed at its next turn.

A step of a lane may compute for many seconds. On the decoding thread each step runs in a greenlet, which has
a stack of its own. When its slice is used up, `between`, which lanes call at every verb, switches back to the
scheduler; so does `wait`, for what a program or a server computes. There is only one thread, so models and
their libraries never see two.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

SLICE_SECONDS = 0.05

_here = threading.local()  # `running`: the sliced work of this thread, innermost last


class Sliced:
    """`work()`, done one slice at a time; `result` is what it returned. All slices must run on one thread."""

    def __init__(self, work: Callable[[], Any]):
        self.work, self.result, self.until = work, None, 0.0
        self.in_company = False  # whether others may ask for forwards too
        self.stack: Any = None  # the greenlet, once begun
        self.awaited: Future | None = None  # without its result the work cannot go on

    @property
    def waits(self) -> bool:
        """Whether the work cannot go on yet, since something elsewhere is not done."""
        return self.awaited is not None and not self.awaited.done()

    def resume(self) -> bool:
        """Works for one slice; True once the work is done. Raises what the work raises."""
        from greenlet import greenlet  # imported only for stepping: traces are drawn without it

        if self.stack is None:
            self.stack = greenlet(self.work)
        self.until = time.monotonic() + SLICE_SECONDS
        return self._enter(self.stack.switch)

    def end(self, error: BaseException) -> None:
        """Raises `error` where the work was interrupted; the work must end with that."""
        self.until = float("inf")
        self._enter(lambda: self.stack.throw(error))

    def _enter(self, switch: Callable[[], Any]) -> bool:
        from greenlet import getcurrent

        running = _here.__dict__.setdefault("running", [])
        self.stack.parent = getcurrent()  # where control returns to
        running.append(self)
        try:
            old = switch()
        finally:
            running.pop()
        if self.stack.dead:
            self.result = old
        return self.stack.dead


def between() -> None:
    """Interrupts the calling work if its slice is used up. Does nothing outside of `Sliced`."""
    running = getattr(_here, "running", None)
    if running and time.monotonic() >= running[-1].until and not _torch_is_held():
        running[-1].stack.parent.switch()


def pause() -> bool:
    """Interrupts the calling work, which is about to run a forward, until its next turn. Returns False if it
    should continue, since no other lane would ask for a forward.
    """
    running = getattr(_here, "running", None)
    if not running or not running[-1].in_company or _torch_is_held():
        return False
    running[-1].stack.parent.switch()
    return True


def wait(future: Future) -> Any:
    """The result of `future`, which is computed elsewhere: the calling work is interrupted until it is there.
    Work that is ended meanwhile cancels it.
    """
    running = getattr(_here, "running", None)
    if not running or _torch_is_held():
        return future.result()
    work = running[-1]
    work.awaited = future
    try:
        while work.waits:
            work.stack.parent.switch()
        return future.result()
    finally:
        work.awaited = None
        future.cancel()


def _torch_is_held() -> bool:
    """Whether a torch mode is on that belongs to the thread and would therefore affect all other work."""
    torch = sys.modules.get("torch")
    return torch is not None and (torch.is_inference_mode_enabled() or not torch.is_grad_enabled())
