"""Folds: one view of one lane, fed step by step and kept, so that any page can read it from any cursor.

Knows traces and views, nothing of runs or pages. A view that fails says so in a sentence and stops growing.
"""

import logging

from decoders.costs import Costs
from decoders.trace import Trace
from visualizers.costs import strip
from visualizers.scene import Header
from visualizers.views import build

log = logging.getLogger(__name__)


class Fold:
    """The deltas of one view, made when first read."""

    def __init__(self, view: str, trace: Trace):
        self.trace = trace
        self.view = build(view, Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title))
        self.head = self.view.head()
        self.deltas: list[list[dict]] = []
        self.problem: str | None = None

    def ops(self, index: int) -> list[dict]:
        """The ops of step `index` (0-based); the trace must have that step."""
        while len(self.deltas) <= index:
            self.deltas.append(self._feed(len(self.deltas)))
        return self.deltas[index]

    def _feed(self, index: int) -> list[dict]:
        if self.problem:
            return []
        try:
            return self.view.feed(self.trace.steps[index])
        except Exception as error:
            log.exception("A view failed")
            self.problem = (
                f"The view {self.view.title} could not draw step {index + 1} ({type(error).__name__})."
            )
            return []


def row(costs: Costs, seconds: float, wall: float | None, slots: int | None) -> dict:
    """What the page keeps of a step besides its marks: cost strip, target forwards and tokens so far, times.

    `seconds` is the lane's own computing time, `wall` the clock at the step (None in stored traces).
    """
    entries = [[entry["name"], entry["label"]] for entry in strip(costs, slots)]
    paid = {"t": costs.target_forwards, "target_tokens": costs.target_tokens, "seconds": seconds}
    return {"cost": entries, **paid, "wall": wall}
