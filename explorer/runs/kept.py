"""What is dropped first when runs use more memory than the app may."""

from collections.abc import Iterable

from explorer.runs.run_state import Run

KEPT_BYTES = (
    256 * 2**20
)  # of all runs together; above it, the finished run that was read longest ago is dropped
MAX_BYTES = 4 * KEPT_BYTES  # of all runs in progress; above it, the largest one is stopped
RECENT_SECONDS = 60.0  # a run that was read this recently stays: pages pull rarely when many wait
FOLD_IDLE_SECONDS = 30.0  # a view that nobody has read for this long may go; it is folded again on demand
CROWDED = (
    "Stopped: all runs together use more memory than the app may. What was decoded stays; ask for fewer "
    "tokens, lanes or candidates."
)


def runs_to_drop(runs: Iterable[Run], quiet: list[Run], now: float) -> tuple[list[Run], Run | None]:
    """What must go so that `runs` fit into memory: the `quiet` runs to drop, longest unread first, and a run
    in progress that must stop. Views that nobody reads are dropped first, here and now.
    """
    runs = list(runs)
    excess = sum(run.bytes for run in runs) - KEPT_BYTES
    if excess > 0:
        excess -= drop_folds(runs, excess, now)
    gone: list[Run] = []
    for run in sorted(quiet, key=lambda run: run.heard):
        if excess <= 0 or now - run.heard < RECENT_SECONDS:
            break
        gone.append(run)
        excess -= run.bytes
    in_progress = [run for run in runs if run.open_lanes() and run not in quiet]
    if sum(run.bytes for run in in_progress) <= MAX_BYTES:
        return gone, None
    return gone, max(in_progress, key=lambda run: run.bytes)


def drop_folds(runs: Iterable[Run], excess: int, now: float) -> int:
    """Drops views that nobody reads, longest unread first, up to `excess` bytes; returns the bytes freed."""
    idle = [
        (fold.read, record, name)
        for run in runs
        for record in run.records
        for name, fold in list(record.folds.items())
        if now - fold.read >= FOLD_IDLE_SECONDS
    ]
    freed = 0
    for _, record, name in sorted(idle, key=lambda one: one[0]):
        if freed >= excess:
            break
        freed += record.folds.pop(name).bytes
    return freed
