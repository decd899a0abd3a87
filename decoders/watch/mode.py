"""What the modes of `generate` have in common: texts, which of them are unfinished, and the forwards."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from decoders.watch.clock import Clock
from decoders.watch.recording import Recording


@dataclass
class Rows:
    """The scores of one step: `raw` [N, V] before any processor, and those that each processor left."""

    raw: torch.Tensor
    stages: list[tuple[str, torch.Tensor]] = field(default_factory=list)

    @property
    def last(self) -> torch.Tensor:
        """What the next tokens are taken from [N, V]."""
        return self.stages[-1][1] if self.stages else self.raw


class Mode:
    """One call: a recording for each prompt. A prompt has `width` rows in each forward.

    Its methods are called with what happens, in the order of a step: `ran` (forwards), `scored` (rows), and
    one of `chosen` (the criteria were asked), `drafted` and `verified`, or those of beams.
    """

    def __init__(
        self,
        config: Any,
        make: Callable[[list[int]], Trace],
        texts: list[list[int]],
        columns: int,
        bytes_of: Callable[[int], bytes],
        clock: Clock,
    ):
        """config: transformers' own, complete; make: prompt -> trace; texts: the prompts without padding;
        columns: their length with it.
        """
        self.config, self.columns = config, columns
        self.width = max(config.num_beams, config.num_return_sequences)
        ends = config.eos_token_id
        eos = frozenset([] if ends is None else [ends] if isinstance(ends, int) else ends)
        budget = config.max_length - columns
        self.recordings = [Recording(make(text), bytes_of, eos, budget, clock) for text in texts]
        self._padding = [columns - len(text) for text in texts]  # columns of it that no forward has read yet
        self._has_read: set[str] = set()

    def ran(self, forward: Forward, columns: int) -> None:
        """A model read this many columns of each row."""
        if forward.kind == "decode":
            forward = replace(forward, kind=self.kind(forward.model))
        self._has_read.add(forward.model)
        for number, recording in enumerate(self.recordings):
            skipped = 0
            if forward.model == "target" and forward.kind != "draft":
                skipped = min(columns - 1, self._padding[number])
                self._padding[number] -= skipped
            rows = self.rows_of(number)
            if recording.open and rows:
                recording.forward(replace(forward, tokens=(columns - skipped) * rows, rows=rows))

    def kind(self, role: str) -> str:
        """What a forward is for that does not draft."""
        return "decode" if role in self._has_read else "prefill"

    def rows_of(self, number: int) -> int:
        """How many rows of a prompt are still of use."""
        return self.width

    def scored(self, rows: Rows) -> None:
        """The processors have run."""

    def chosen(self, given: dict[str, Any], done: torch.Tensor) -> None:
        """The stopping criteria were asked about `input_ids` [N, T]; done [N]: which of them are over."""

    def drafted(self, given: dict[str, Any], result: tuple) -> None:
        """A candidate generator has answered."""

    def verified(self, given: dict[str, Any], result: None) -> None:
        """The target has tested the candidates."""

    def beams_kept(self, given: dict[str, Any], result: tuple) -> None:
        """Beam search has chosen the beams that live on."""

    def beams_finished(self, given: dict[str, Any], result: tuple) -> None:
        """Beam search has chosen the finished texts that it keeps."""

    def beams_step(self, given: dict[str, Any], result: Any) -> None:
        """Beam search has decided whether it continues."""

    def finish(self) -> None:
        """`generate` has returned."""
        self.end()

    def end(self, sentence: str | None = None) -> None:
        """Ends what is unfinished."""
        for recording in self.recordings:
            recording.end(sentence)
