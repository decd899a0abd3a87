"""The progress of an experiment on the error stream: on a terminal one line that changes, else a line for
every tenth. The remaining time is estimated from the time that the share so far took.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from explorer.experiments.progress import watched

OFTEN = 0.2  # seconds between two updates of the line
CLEAR = "\r\x1b[K"  # returns to the start of the line and clears it


@contextmanager
def shown(name: str) -> Iterator[None]:
    """While this is open, the progress of the experiment `name` is shown; at the end, how long it took."""
    stream, began = sys.stderr, perf_counter()
    line = stream.isatty()
    last = {"tenth": 0, "at": began - OFTEN}

    def hear(done: float) -> None:
        now, tenth = perf_counter(), int(10 * done + 1e-9)
        if now - last["at"] < OFTEN if line else tenth == last["tenth"]:
            return
        last.update(tenth=tenth, at=now)
        words = f"{name}: {done:.0%} done, {left(done, now - began)}"
        print(CLEAR + words if line else words, end="" if line else "\n", file=stream, flush=True)

    with watched(hear):
        yield
    print(f"{CLEAR if line else ''}{name}: done in {spoken(perf_counter() - began)}", file=stream, flush=True)


def left(done: float, seconds: float) -> str:
    """`about 2 min left`: the remaining time if the part `done` took `seconds`."""
    return f"about {spoken(seconds * (1 - done) / done)} left" if done else "time left not known yet"


def spoken(seconds: float) -> str:
    """`8 s`, `3 min`, `1 h 20 min`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
