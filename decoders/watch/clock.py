"""Measures a call of `generate`, without the time that recording takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Runs from its making on, except while it is stopped."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._stopped_at: float | None = None

    def now(self) -> float:
        """Seconds so far."""
        return (time.perf_counter() if self._stopped_at is None else self._stopped_at) - self._since

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While this is open the clock stands."""
        self._stopped_at = time.perf_counter()
        try:
            yield
        finally:
            self._since += time.perf_counter() - self._stopped_at
            self._stopped_at = None
