"""Seconds of a call of `generate`, without those that recording takes."""

import time


class Clock:
    """Runs from its making on; what is skipped does not count."""

    def __init__(self) -> None:
        self.since = time.perf_counter()

    def now(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.since

    def skip(self, seconds: float) -> None:
        """Takes out what was no part of generating."""
        self.since += seconds
