"""Functions that a lane calls but that its caller provides: running tests, checking syntax, sharing the
device.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from decoders.strategy import Part


@dataclass(frozen=True)
class Callbacks:
    """Functions that are given to a `Lane`; None where the caller has no such function.

    pass_rate: (prompt, text written) -> the share of the prompt's own tests that the text passes, from 0 to
        1; None if the prompt has no tests. The scorer and the constraint `tests` need it.
    allowed: (prompt, text written, whether the text is complete) -> whether it is syntactically valid, or can
        still become so; None if the prompt is in no known language. The constraint `syntax` needs it.
    between: called between two pieces of a step, so that other lanes can compute. Its time does not count as
        the lane's.
    pause: called before a forward, so that other lanes can request forwards that then run in the same batch.
        Its time does not count as the lane's. Returns False at once if no other lane can.
    wait: (future) -> its result; called while a program or a server computes it, so that other lanes can
        compute.
    programs: the threads in which `pass_rate` is called and waited for; None: the lane's own.
    """

    pass_rate: Callable[[str, str], float | None] | None = None
    allowed: Callable[[str, str, bool], bool | None] | None = None
    between: Callable[[], None] | None = None
    pause: Callable[[], bool] | None = None
    wait: Callable[[Future], Any] | None = None
    programs: Executor | None = None

    def lacks(self, parts: Sequence[Part]) -> str | None:
        """The message to show if one of a strategy's parts needs a function that is missing, else None."""
        names = {part.name for part in parts if part.kind in ("value", "constraint")}
        if "tests" in names and self.pass_rate is None:
            return "No function runs tests here; choose another scorer or constraint."
        if "syntax" in names and self.allowed is None:
            return "No function checks a syntax here; choose another constraint."
        return None
