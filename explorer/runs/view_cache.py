"""Folds: a cached view of one lane, fed step by step, which any page can read from any cursor.

A view that fails says so in one sentence and stops growing.
"""

import logging
import threading
import time

from decoders.trace.costs import Costs
from decoders.trace.events import Step
from decoders.trace.trace import Trace
from explorer.runs.memory_sizes import memory_of, ops_bytes
from visualizers.analysis.cost_summary import strip
from visualizers.registry import build, head_of
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header

log = logging.getLogger(__name__)


class Fold:
    """The deltas of one view, made when first read, by any thread. `bytes` is its approximate size."""

    def __init__(self, view: str, trace: Trace):
        self.trace = trace
        self.view = build(view, Header.of(trace))
        self.head = head_of(self.view)
        self.deltas: list[list[dict]] = []
        self.problem: str | None = None
        self.kept, self.remembered = (
            0,
            0,
        )  # bytes of the deltas, and of what the view remembers in order to continue
        self.read = time.monotonic()
        self.lock = threading.Lock()

    @property
    def bytes(self) -> int:
        return self.kept + self.remembered

    def ops(self, index: int) -> list[dict]:
        """The ops of step `index` (0-based), which the trace must have."""
        self.read = time.monotonic()
        if len(self.deltas) <= index:
            with self.lock:
                while len(self.deltas) <= index:
                    self._grow()
        return self.deltas[index]

    def _grow(self) -> None:
        step = self.trace.steps[len(self.deltas)]
        made = self._feed(step)
        self.kept, self.remembered = self.kept + ops_bytes(made), self.remembered + memory_of(step)
        self.deltas.append(made)
        self._settle()

    def settle(self) -> None:
        """To be called when the trace has ended: frees what the view remembers once it has drawn
        everything.
        """
        with self.lock:
            self._settle()

    def _settle(self) -> None:
        if self.trace.ended is not None and len(self.deltas) == len(self.trace.steps):
            self.view, self.remembered = None, 0

    def _feed(self, step: Step) -> list[dict]:
        if self.problem or self.view is None:
            return []
        try:
            return to_json(self.view.feed(step))
        except Exception as error:
            log.exception("A view failed")
            self.problem = (
                f"The view {self.view.title} could not draw step {step.index + 1} ({type(error).__name__})."
            )
            return []


def row(costs: Costs, seconds: float, wall: float | None) -> dict:
    """What the page keeps of a step besides its marks: cost strip, target forwards and tokens so far, and
    times.

    `seconds` is the lane's own computing time, `wall` the clock at the step (None in stored traces).
    """
    entries = [[entry["name"], entry["label"]] for entry in strip(costs)]
    paid = {"t": costs.target_forwards, "target_tokens": costs.target_tokens, "seconds": seconds}
    return {"cost": entries, **paid, "wall": wall}
