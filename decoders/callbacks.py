"""What a lane asks of whoever starts it, since what it needs is done or described elsewhere.

Knows texts and functions, no lane.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoders.strategy import Part


@dataclass(frozen=True)
class Callbacks:
    """Functions that are given to a `Lane`. None: there is no such function.

    pass_rate: prompt, what was written -> the share of the prompt's own tests that it passes, from 0 to 1;
        None if the prompt brings no tests. The scorer and the constraint `tests` need it.
    allowed: prompt, what was written, whether that is all -> whether it is, or may become, right in the
        prompt's language; None if it has none. The constraint `syntax` needs it.
    between: called between two pieces of a step; its time is not the lane's. Others may compute in it.
    pause: called before a forward; its time is not the lane's. The forwards that others ask for in it run
        together with this one. False, at once, if nobody else can ask.
    """

    pass_rate: Callable[[str, str], float | None] | None = None
    allowed: Callable[[str, str, bool], bool | None] | None = None
    between: Callable[[], None] | None = None
    pause: Callable[[], bool] | None = None

    def lacks(self, parts: Sequence[Part]) -> str | None:
        """The sentence to show if one of a strategy's parts needs a function that is not there."""
        names = {part.name for part in parts if part.kind in ("value", "constraint")}
        if "tests" in names and self.pass_rate is None:
            return "Nothing is there that could run tests; choose another scorer or constraint."
        if "syntax" in names and self.allowed is None:
            return "Nothing is there that knows a syntax; choose another constraint."
        return None
