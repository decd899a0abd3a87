"""Lanes that decode at the same time on one thread, in joint forwards, as in the app's scheduler."""

from collections.abc import Callable, Sequence

from decoders.callbacks import Callbacks
from decoders.lane import Lane
from explorer.runs.slices import Sliced, pause


def in_company(makers: Sequence[Callable[[Callbacks], Lane]]) -> list[Lane]:
    """The lanes from these makers, decoded to their ends; each waits for the others at its forwards."""
    lanes = [make(Callbacks(pause=pause)) for make in makers]
    in_turns([lane.run for lane in lanes])
    return lanes


def in_turns(works: Sequence[Callable[[], object]]) -> list:
    """The result of each of `works`, or the error that it raises; they are interrupted where they `pause`."""
    turns, results = {at: Sliced(work) for at, work in enumerate(works)}, [None] * len(works)
    while turns:
        for at, turn in list(turns.items()):
            turn.in_company = len(turns) > 1
            try:
                if not turn.resume():
                    continue
                results[at] = turn.result
            except Exception as error:
                results[at] = error
            del turns[at]
    return results
