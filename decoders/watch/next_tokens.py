"""Greedy decoding and sampling by `generate`: one token more for each text at a step.

Events are those of our own strategies `greedy` and `sample`, without the number that a token was drawn with:
torch.multinomial uses one for each token of the vocabulary.
"""

from typing import Any

import torch

from decoders.sampling.side_by_side import Sample
from decoders.speculative.interfaces import SAMPLED
from decoders.trace.scores import ScoreName
from decoders.watch.mode import Mode, Rows
from decoders.watch.recording import Recording


class NextTokens(Mode):
    """Each prompt has one text, or with num_return_sequences several, of which the first is the output."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.texts = [
            [Sample(number, recording.tip) for number in range(self.width)] for recording in self.recordings
        ]
        self.growing = [set(range(self.width)) for _ in self.recordings]
        self.raw: dict[int, torch.Tensor] = {}  # row -> log-probabilities [V] before the processors
        self.offered: dict[int, torch.Tensor] = {}  # and after them

    def rows_of(self, number: int) -> int:
        return len(self.growing[number])

    def scored(self, rows: Rows) -> None:
        """Records what was on offer to each unfinished text."""
        for number, recording in enumerate(self.recordings):
            if self.growing[number]:
                self._record_offers(number, recording, rows)

    def _record_offers(self, number: int, recording: Recording, rows: Rows) -> None:
        tips: dict[int, int] = {}  # node -> its first row; at first all texts stand in one place
        for text in self.growing[number]:
            tips.setdefault(self.texts[number][text].node, number * self.width + text)
        nodes, places = list(tips), list(tips.values())
        raw = recording.distribution(nodes, rows.raw[places])
        offered = raw
        for name, scores in rows.stages[:-1]:
            if scores[places].isfinite().any(-1).all():
                recording.distribution(nodes, scores[places], "processed", name)
        if rows.stages and rows.last[places].isfinite().any(-1).all():
            offered = recording.distribution(nodes, rows.last[places], "processed")
        for text in self.growing[number]:
            row, at = number * self.width + text, nodes.index(self.texts[number][text].node)
            self.raw[row], self.offered[row] = raw[at], offered[at]

    def chosen(self, given: dict[str, Any], done: torch.Tensor) -> None:
        """Records the tokens that were taken, and the texts that end with them."""
        tokens, over = given["input_ids"][:, -1].tolist(), done.tolist()
        for number, recording in enumerate(self.recordings):
            if not self.growing[number]:
                continue
            for text in sorted(self.growing[number]):
                row = number * self.width + text
                self._grow(recording, self.texts[number][text], row, tokens[row], over[row])
                if over[row]:
                    self.growing[number].discard(text)
            if not self.growing[number]:
                self._conclude(recording, self.texts[number])
            recording.close_step()
            if not self.growing[number]:
                recording.end()

    def _grow(self, recording: Recording, text: Sample, row: int, token: int, over: bool) -> None:
        raw, fill = float(self.raw[row][token]), SAMPLED if self.config.do_sample else None
        if self.width == 1:
            text.node = recording.propose(text.node, token, float(self.offered[row][token]), fill=fill)
            recording.commit([text.node], [raw])
            return
        text.node = recording.propose(text.node, token, raw, slot=text.number, fill=fill)
        text.logprobs.append(raw)
        if over:
            length = len(text.logprobs)
            reason = f"sample {text.number} ends after {length} tokens"
            if token not in recording.eos and length == recording.budget:
                reason = f"sample {text.number} reaches the limit"
            recording.verdict(text.node, "finished", reason=reason)

    def _conclude(self, recording: Recording, texts: list[Sample]) -> None:
        """Several texts have no output before all have ended: it is the first of them."""
        if self.width == 1:
            return
        for rank, text in enumerate(texts, 1):
            recording.record_rank(text.node, ScoreName.SAMPLE, sum(text.logprobs), rank)
        path = recording.tree.path(texts[0].node, above=recording.tip)
        recording.commit(path, list(texts[0].logprobs))
