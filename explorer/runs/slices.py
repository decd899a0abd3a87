"""Long work of one thread in slices: it is left where it stands, and taken up again when its turn comes.

A step of a lane may compute for many seconds. On the decoding thread each runs in a greenlet, a stack of its
own; when its slice is used up, `between`, which lanes call at every verb, goes back to whoever gives out the
turns. There is one thread all the while, so models and their libraries never see two. Knows no lanes.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

SLICE_SECONDS = 0.05

_here = threading.local()  # `running`: what the thread works on in slices, the innermost last


class Sliced:
    """`work()`, done a slice at a time; `result` is what it returned. One thread must do all slices."""

    def __init__(self, work: Callable[[], Any]):
        self.work, self.result, self.until = work, None, 0.0
        self.in_company = False  # whether others may ask for forwards too
        self.stack: Any = None  # the greenlet, once begun

    def go_on(self) -> bool:
        """Works for a slice; True once all is done. Raises what the work raises."""
        from greenlet import greenlet  # only where something is stepped: traces are drawn without it

        if self.stack is None:
            self.stack = greenlet(self.work)
        self.until = time.monotonic() + SLICE_SECONDS
        return self._enter(self.stack.switch)

    def end(self, error: BaseException) -> None:
        """Raises `error` where the work was left; it must come to its end with that."""
        self.until = float("inf")
        self._enter(lambda: self.stack.throw(error))

    def _enter(self, switch: Callable[[], Any]) -> bool:
        from greenlet import getcurrent

        running = _here.__dict__.setdefault("running", [])
        self.stack.parent = getcurrent()  # where it comes back to
        running.append(self)
        try:
            old = switch()
        finally:
            running.pop()
        if self.stack.dead:
            self.result = old
        return self.stack.dead


def between() -> None:
    """Leaves the work that calls this if its slice is used up. Nothing happens outside of `Sliced`."""
    running = getattr(_here, "running", None)
    if running and time.monotonic() >= running[-1].until and not _torch_is_held():
        running[-1].stack.parent.switch()


def pause() -> bool:
    """Leaves the work that calls this, which is about to run a forward, until its next turn; False if it
    should continue, since nobody else would ask for one.
    """
    running = getattr(_here, "running", None)
    if not running or not running[-1].in_company or _torch_is_held():
        return False
    running[-1].stack.parent.switch()
    return True


def _torch_is_held() -> bool:
    """Whether a mode of torch is on, which belongs to the thread and would be on for all others too."""
    torch = sys.modules.get("torch")
    return torch is not None and (torch.is_inference_mode_enabled() or not torch.is_grad_enabled())
