"""The trace of one text that a `generate` writes: the recording methods of a lane, for decoding that happens
elsewhere.
"""

from collections.abc import Callable

from decoders.engine.tree import Tree
from decoders.recorder import Recorder
from decoders.trace.endings import END_OF_TEXT, MAX_NEW_TOKENS
from decoders.trace.events import Commit, Forward, Step
from decoders.trace.trace import Trace
from decoders.watch.clock import Clock


class Recording(Recorder):
    """What a lane offers to code that records a step: its tree, tip, limits and verbs. Decodes nothing."""

    def __init__(
        self, trace: Trace, bytes_of: Callable[[int], bytes], eos: frozenset[int], budget: int, clock: Clock
    ):
        super().__init__(Tree(list(trace.prompt)), trace, bytes_of)
        self.parameters, self.clock = trace.parameters, clock
        self.eos, self.budget, self.written = eos, budget, 0
        self.tip = self.tree.trunk - 1
        self.stopped: set[int] = set()  # nodes at which a stopping criterion ended the text
        self.ended_by: str | None = None

    @property
    def open(self) -> bool:
        """Whether the text is unfinished."""
        return self.trace.ended is None

    def check_limits(self) -> None:
        """Nothing waits for this lane."""

    def drop(self, nodes: list[int]) -> None:
        """What the dead nodes held is transformers' own to give back."""

    def ends(self, node: int) -> bool:
        """Whether the text is over with this node, for another reason than its length."""
        return self.tree.tokens[node] in self.eos or node in self.stopped

    def forward(self, event: Forward) -> None:
        """A model ran."""
        self.record(event)

    def commit(self, nodes: list[int], logprobs: list[float | None]) -> None:
        """These nodes, a path below the newest committed one, are output now."""
        self.record(Commit(list(nodes), list(logprobs)))
        self.tip, self.written = nodes[-1], self.written + len(nodes)

    def close_step(self) -> None:
        """What was recorded since the last one is a step."""
        if self.events:
            self.trace.append(Step(len(self.trace.steps), self.events, self.clock.now()))
            self.events = []

    def end(self, sentence: str | None = None) -> None:
        """Ends the trace, for the reason that its last token gives if there is no other."""
        if self.open:
            self.close_step()
            self.trace.ended = sentence or self.ended_by or self._reason()

    def _reason(self) -> str:
        if self.tree.tokens[self.tip] in self.eos:
            return END_OF_TEXT
        if self.written >= self.budget:
            return MAX_NEW_TOKENS.format(self.budget)
        return "A stopping criterion of generate ended the text."
