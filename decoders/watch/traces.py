"""What a watch has recorded: a trace for each request, to look at afterwards."""

from typing import Any

from decoders.refusal import Refusal
from decoders.trace import trace
from decoders.trace.trace import Trace


class Traces:
    """The base of what `watch` returns. `traces`: one for each prompt of each call, in order."""

    watches = "the model's generate"  # the call that leaves traces, as a sentence names it

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    @property
    def trace(self) -> Trace:
        """The newest trace. Raises Refusal with one sentence if there is none."""
        if not self.traces:
            raise Refusal(f"Nothing was recorded; call {self.watches} inside the with statement.")
        return self.traces[-1]

    def show(self) -> Any:
        """The traces as a notebook draws them, one to four side by side. Raises Refusal with one sentence
        if there are none, or more: then show some of `traces`, or one by its own `show()`.
        """
        return trace.show(*(self.traces or [self.trace]))
