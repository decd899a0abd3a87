"""A lane with a script instead of a model: its steps are fixed in advance, for tests of the code around
it.
"""

import threading
import time

from decoders.trace.events import Commit, Distribution, Forward, Propose, Step
from decoders.trace.trace import Trace


class ScriptedLane:
    """Writes `tokens` (bytes), one per step; remembers which threads used it and whether it was closed."""

    reading = None

    def __init__(self, tokens: list[bytes], pause: float = 0.0, fail_at: int | None = None):
        self.tokens, self.pause, self.fail_at = tokens, pause, fail_at
        self.threads: set[str] = set()
        self.closed = 0
        vocabulary = {0: b"Once", **{i + 1: token for i, token in enumerate(tokens)}}
        self.trace = Trace("scripted", "Scripted", {}, 0, {"target": "script"}, [0], vocabulary, "")

    def advance(self) -> Step | None:
        """The next step of the script."""
        self.threads.add(threading.current_thread().name)
        time.sleep(self.pause)
        index = len(self.trace.steps)
        if index == self.fail_at:
            raise RuntimeError("scripted failure")
        if index == len(self.tokens):
            self.trace.ended = "The script has ended."
            return None
        node = index + 1
        events = [
            Forward("target", "decode", 1, 1, index * 0.1, 0.05),
            Distribution(node - 1, "target", [[node, -0.5]], 0.4, 1.0),
            Propose(node, node - 1, node, -0.5, "target"),
            Commit([node], [-0.5]),
        ]
        step = Step(index, events, (index + 1) * 0.1)
        self.trace.append(step)
        return step

    def close(self) -> None:
        """May be called twice, like a lane's."""
        self.closed += 1
        self.trace.ended = self.trace.ended or "Stopped by hand."
