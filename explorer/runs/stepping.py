"""One lane's step on the decoding thread: a slice of it, its end, and what it brings into the run's record.

Knows lanes and records, not whose turn it is.
"""

import logging
import time
from typing import Any

from decoders.limits import AtLimit
from explorer.runs.run_state import Record, held
from explorer.runs.slices import Sliced
from explorer.runs.validation import sentence
from explorer.runs.view_cache import row

log = logging.getLogger(__name__)


def go_on(record: Record, lane: Any, in_company: bool = False) -> bool:
    """A slice of the lane's step, or up to a forward in which others may join; True once the step is done.
    What goes wrong stands in the record.
    """
    record.step = record.step or Sliced(lane.advance)
    record.step.in_company = in_company
    try:
        if not record.step.go_on():
            return False
        enter(record, lane)
    except Exception as error:
        record.problem = sentence(error)
        if not isinstance(error, ValueError):
            log.exception("A lane failed")
    record.step = None
    return True


def end(record: Record, lane: Any) -> None:
    """Closes the lane; what it has recorded of a step that is under way becomes its last step."""
    try:
        if record.step is not None:
            record.step.end(AtLimit("Stopped by hand."))
            enter(record, lane)
    except Exception:
        log.exception("A lane failed when it was stopped")
    record.step = None
    lane.close()
    for fold in list(record.folds.values()):
        fold.settle()


def enter(record: Record, lane: Any) -> None:
    """Takes what the step has brought into the record."""
    step = record.step.result
    if step is None:
        return
    if record.trace.ended is None:  # a lane that has ended has given its slots back
        record.slots = held(lane)
    record.add(step, row(record.trace.costs, step.seconds, time.time(), record.slots))
