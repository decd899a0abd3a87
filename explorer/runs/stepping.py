"""One lane's step on the decoding thread: one slice of it, its end, and its entry in the run's record."""

import logging
import time
from typing import Any

from decoders.limits import AtLimit
from explorer.runs.run_state import Record
from explorer.runs.slices import Sliced
from explorer.runs.validation import is_ours, sentence
from explorer.runs.view_cache import row

log = logging.getLogger(__name__)


def resume(record: Record, lane: Any, in_company: bool = False) -> bool:
    """Works on the lane's step for one slice, or up to a forward that can be batched with others. True once
    the step is done. Errors are noted in the record.
    """
    record.step = record.step or Sliced(lane.advance)
    record.step.in_company = in_company
    try:
        if not record.step.resume():
            return False
        enter(record, lane)
    except Exception as error:
        record.problem = sentence(error, "This lane")
        if not is_ours(error):
            log.exception("A lane failed")
    record.step = None
    return True


def end(record: Record, lane: Any) -> None:
    """Closes the lane; what it has recorded of an unfinished step becomes its last step."""
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
    """Enters the finished step into the record."""
    step = record.step.result
    if step is None:
        return
    record.add(step, row(record.trace.costs, step.seconds, time.time()))
