"""What goes first when runs take more memory than the app may use. Knows runs and their views, no worker."""

from collections.abc import Iterable

from explorer.runs.run_state import Run

KEPT_BYTES = 256 * 2**20  # of all runs together; above, what is done and was seen longest ago goes
MAX_BYTES = 4 * KEPT_BYTES  # of all runs that are under way; above, the largest ends
LATELY_SECONDS = 60.0  # a run that was asked for within so long stays: pages ask rarely where many wait
FOLD_REST_SECONDS = 30.0  # a view that nobody has read for so long is folded again when it is wanted
CROWDED = (
    "Stopped: all runs together take more memory than the app may use. What was decoded stays; ask for fewer "
    "tokens, lanes or candidates."
)


def too_much(runs: Iterable[Run], quiet: list[Run], now: float) -> tuple[list[Run], Run | None]:
    """What must go so that `runs` fit: those of the `quiet` ones to be dropped, seen longest ago first, and a
    run under way that must end. Before these, views that nobody reads go, here and now.
    """
    runs = list(runs)
    excess = sum(run.bytes for run in runs) - KEPT_BYTES
    if excess > 0:
        excess -= dropped_folds(runs, excess, now)
    gone: list[Run] = []
    for run in sorted(quiet, key=lambda run: run.heard):
        if excess <= 0 or now - run.heard < LATELY_SECONDS:
            break
        gone.append(run)
        excess -= run.bytes
    under_way = [run for run in runs if run.open_lanes() and run not in quiet]
    if sum(run.bytes for run in under_way) <= MAX_BYTES:
        return gone, None
    return gone, max(under_way, key=lambda run: run.bytes)


def dropped_folds(runs: Iterable[Run], excess: int, now: float) -> int:
    """Drops views that nobody reads, the longest unread first, up to `excess` bytes; how many were freed."""
    resting = [
        (fold.read, record, name)
        for run in runs
        for record in run.records
        for name, fold in list(record.folds.items())
        if now - fold.read >= FOLD_REST_SECONDS
    ]
    freed = 0
    for _, record, name in sorted(resting, key=lambda one: one[0]):
        if freed >= excess:
            break
        freed += record.folds.pop(name).bytes
    return freed
