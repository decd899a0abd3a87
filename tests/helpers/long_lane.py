"""A lane whose steps are long: each consists of many pieces, and lets others compute between two of them."""

import time

from decoders.limits import AtLimit
from decoders.trace.events import Note, Step
from decoders.trace.trace import Trace
from explorer.runs.slices import between


class LongLane:
    """`steps` steps of `pieces` pieces each, with a note per piece; the notes of a step that is ended in the
    middle are kept, as in a real lane. `pause`: the minimum seconds of a piece.
    """

    reading = None

    def __init__(self, pieces: int, steps: int = 1, pause: float = 0.0):
        self.pause = pause
        self.pieces, self.left, self.done, self.closed = pieces, steps, 0, 0
        self.trace = Trace("long", "Long", {}, 0, {"target": "script"}, [0], {0: b"Once"}, "")

    def advance(self) -> Step | None:
        """A step; None after the last."""
        if self.trace.ended is not None or not self.left:
            self.trace.ended = self.trace.ended or "The script has ended."
            return None
        events, ending = [], None
        try:
            for _ in range(self.pieces):
                between()
                time.sleep(self.pause)
                self.done += 1
                events.append(Note(f"Piece {self.done}."))
        except AtLimit as error:
            ending = str(error)
        self.left -= 1
        step = Step(len(self.trace.steps), events, 0.1 * (1 + len(self.trace.steps)))
        self.trace.append(step)
        self.trace.ended = ending
        return step

    def close(self) -> None:
        """May be called twice."""
        self.closed += 1
        self.trace.ended = self.trace.ended or "Stopped by hand."
