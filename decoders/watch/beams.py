"""Beam search and beam sampling by `generate`: its own bookkeeping, recorded as our beam search records.

Every decision (candidates, beams that live on, finished texts, the end) is read from transformers' tensors;
`beam_state.Beams` records it and finds the branches that no beam continues any more.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from decoders.search.beam.beam_state import Beams, Candidate, Hypothesis, close_step
from decoders.watch.mode import Mode, Rows
from decoders.watch.recording import Recording

FILLER = -1e8  # scores below this stand for nothing in transformers' tensors
Way = tuple[tuple[int, ...], tuple[int, ...]]  # a text: the beam that each of its tokens came from, tokens


class BeamSearch(Mode):
    """Each prompt has num_beams rows in a forward."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.searches = [WatchedBeams(recording, self.config) for recording in self.recordings]
        self.rows: Rows | None = None
        self.kept: tuple = ()
        self.pending: dict[str, Any] = {}
        self.ended: tuple = ()

    def scored(self, rows: Rows) -> None:
        """Records what was on offer to each live text."""
        self.rows = rows  # of log-probabilities
        for number, search in enumerate(self.searches):
            if search.lane.open:
                search.added = "processors" if rows.stages else None
                nodes, places = search.places(number * self.width)
                search.lane.distribution(nodes, rows.raw[places])
                for name, scores in rows.stages:
                    level = None if scores is rows.last else name
                    left = [i for i, place in enumerate(places) if scores[place].isfinite().any()]
                    if left:
                        chosen = scores[[places[i] for i in left]]
                        search.lane.distribution([nodes[i] for i in left], chosen, "processed", level)

    def beams_kept(self, given: dict[str, Any], result: tuple) -> None:
        self.kept = result

    def beams_finished(self, given: dict[str, Any], result: tuple) -> None:
        self.pending, self.ended = given, result

    def beams_step(self, given: dict[str, Any], result: Any) -> None:
        """One position is decided for all prompts."""
        more, improvable = bool(result), given["is_early_stop_heuristic_unsatisfied"].flatten().tolist()
        full = given["is_sent_finished"].all(-1).tolist()
        for number, search in enumerate(self.searches):
            if not search.lane.open:
                continue
            goes_on = (
                more and improvable[number] and not (full[number] and self.config.early_stopping is True)
            )
            search.step(self._decisions(number), self._scores(number), goes_on)
            close_step(search.lane, [search])
            search.lane.close_step()
            if not search.live:
                search.lane.end()

    def _scores(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows [B, V] of one prompt: what decides, and the model's own."""
        rows = slice(number * self.width, (number + 1) * self.width)
        return self.rows.last[rows], self.rows.raw[rows]

    def _decisions(self, number: int) -> "Decisions":
        """What transformers decided for one prompt at this position."""
        given, start = self.pending, self.pending["decoder_prompt_len"]
        first = number * self.width

        def ways(sequences: torch.Tensor, beams: torch.Tensor) -> list[Way]:
            tokens, origins = sequences[number, :, start:].tolist(), beams[number].tolist()
            decided = []
            for text, origin in zip(tokens, origins, strict=True):
                whole = sum(beam >= 0 for beam in origin)
                decided.append((tuple(b - first for b in origin[:whole]), tuple(text[:whole])))
            return decided

        sequences, scores, indices, done = self.ended
        running, running_scores, running_indices = self.kept
        entered = {
            way: score
            for way, score, over in zip(
                ways(sequences, indices), scores[number].tolist(), done[number].tolist(), strict=True
            )
            if over and score > FILLER
        }
        live = [
            way
            for way, score in zip(
                ways(running, running_indices), running_scores[number].tolist(), strict=True
            )
            if score > FILLER
        ]
        return Decisions(
            ways(given["topk_running_sequences"], given["topk_running_beam_indices"]),
            given["topk_log_probs"][number].tolist(),
            given["next_token_hits_stopping_criteria"][number].tolist(),
            live,
            entered,
        )


@dataclass(frozen=True)
class Decisions:
    """One position of one search: candidates with their sums and whether they are over, the texts that live
    on (in the order of transformers' rows), and the score of each finished text that is kept.
    """

    candidates: list[Way]
    totals: list[float]
    over: list[bool]
    live: list[Way]
    entered: dict[Way, float]


@dataclass(slots=True)
class WatchedCandidate(Candidate):
    """A candidate that knows its place among transformers' own."""

    slot: int = 0


class WatchedBeams(Beams):
    """Beams whose decisions were made elsewhere. Rows of transformers are named by their numbers."""

    lane: Recording

    def __init__(self, recording: Recording, config: Any):
        super().__init__(recording, config.num_beams)
        self.rows = dict.fromkeys(range(config.num_beams), 0)  # row -> its place in `live`
        self.ways: dict[int, Way] = {}  # node of a candidate or finished text -> its way
        self.now: Decisions | None = None
        self.goes_on = True
        self._places: dict[int, int] = {}  # `rows` of the position under way

    def places(self, first: int) -> tuple[list[int], list[int]]:
        """The live nodes, and for each the row, counted from `first`, that scores it."""
        row_of: dict[int, int] = {}
        for row, place in self.rows.items():
            row_of.setdefault(place, first + row)
        return list(self.live), [row_of[place] for place in range(len(self.live))]

    def step(self, decisions: Decisions, scores: tuple[torch.Tensor, torch.Tensor], goes_on: bool) -> None:
        """One position, as transformers decided it. scores: rows [B, V] that decide, and the model's own."""
        self.now, self.goes_on = decisions, goes_on
        self._places = dict(self.rows)
        self.advance(*scores)
        at = {self.ways[node]: place for place, node in enumerate(self.live)}
        self.rows = {row: at[way] for row, way in enumerate(decisions.live) if way in at}

    def _best(self, scores: torch.Tensor, logprobs: torch.Tensor) -> list[Candidate]:
        candidates = []
        for slot, ((origin, tokens), total) in enumerate(
            zip(self.now.candidates, self.now.totals, strict=True)
        ):
            if total <= FILLER or not math.isfinite(total):
                continue
            row, token = origin[-1], tokens[-1]
            logprob = float(logprobs[row, token])
            place = self._places[row]
            penalty = self.penalties[place] + logprob - float(scores[row, token]) if self.added else 0.0
            candidates.append(
                WatchedCandidate(total, penalty, logprob, place, token, slot < self.width, slot)
            )
        return candidates

    def _ends(self, node: int, candidate: "WatchedCandidate") -> bool:
        self.ways[node] = self.now.candidates[candidate.slot]
        if not self.now.over[candidate.slot]:
            return False
        if self.length < self.lane.budget:
            self.lane.stopped.add(node)
        return True

    def _lives_on(self, candidate: "WatchedCandidate", kept: int) -> bool:
        return self.now.candidates[candidate.slot] in self.now.live

    def _why_finished(self, node: int, candidate: Candidate) -> str:
        if candidate.token not in self.lane.eos and node in self.lane.stopped:
            return "a stopping criterion"
        return super()._why_finished(node, candidate)

    def _enter(self, ended: Hypothesis) -> Hypothesis | None:
        if self.ways[ended.node] not in self.now.entered:
            return ended
        ended.score = self.now.entered[self.ways[ended.node]]
        out = [h for h in self.finished if self.ways[h.node] not in self.now.entered]
        full = len(self.finished) == self.width
        self.finished.append(ended)
        if full:
            self.finished.remove(out[-1])
        self.finished.sort(key=lambda h: -h.score)
        return out[-1] if full else None

    def _open(self) -> bool:
        return self.goes_on
