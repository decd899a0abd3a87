"""Dynamic beam allocation: beam search whose texts must contain given phrases, at the cost of one beam
search.

Post and Vilar (2018), Fast Lexically Constrained Decoding with Dynamic Beam Allocation for Neural Machine
Translation. The phrases are in lexical_constraint.py, the bookkeeping in beam_state.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.logits.processor_order import stages
from decoders.parameters import free_text, integer, switch
from decoders.refusal import Refusal
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.search.beam.beam_state import (
    EARLY_STOPPING,
    LENGTH_PENALTY,
    RETURNED,
    Beams,
    Candidate,
    close_step,
    too_many_returned,
)
from decoders.search.beam.lexical_constraint import LexicalConstraint, Met, phrases_of, slots_per_bank
from decoders.search.shaped import record_processed
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName


@dataclass(slots=True)
class Banked(Candidate):
    """A candidate with its bank (tokens met), and how many of that bank are better."""

    bank: int = 0
    place: int = 0


class BankedBeams(Beams):
    """Beams whose slots are divided among banks: bank b has the texts that have met b tokens."""

    def __init__(self, lane: Lane, width: int, constraint: LexicalConstraint):
        added = "processors" if stages(lane.shaping) else None
        super().__init__(lane, width, added=added, worth=lambda node: self.met(node).count)
        self.constraint = constraint
        self.known: dict[int, Met] = {lane.tip: constraint.start()}
        for token in lane.tree.tokens[len(lane.trace.prompt) :]:  # what the lane begins with counts
            self.known[lane.tip] = constraint.advance(self.known[lane.tip], token)
        self.slots: list[int] = []
        self.competing: list[int] = []
        self.living: list[int] = []  # live hypotheses of each bank so far in this step

    def met(self, node: int) -> Met:
        """The phrase tokens that the text down to a node has met; the state of the node's parent must be
        known already.
        """
        if node not in self.known:
            tree = self.lane.tree
            before = self.known[tree.parents[node]]
            self.known[node] = self.constraint.advance(before, tree.tokens[node])
        return self.known[node]

    def _best(self, scores: torch.Tensor, logprobs: torch.Tensor) -> list[Candidate]:
        """The candidates of all banks, best first, after the banks have shared out the slots."""
        states = [self.met(node) for node in self.live]
        unmet = [row for row, state in enumerate(states) if not self.constraint.may_end(state)]
        if unmet:  # no end of text before all phrases are met
            scores = scores.clone()
            scores[
                torch.tensor(unmet)[:, None], torch.tensor(sorted(self.lane.eos), dtype=torch.long)
            ] = -math.inf
        candidates = [
            Banked(c.total, c.penalty, c.logprob, c.row, c.token) for c in self._overall(scores, logprobs)
        ]
        candidates += self._of_each(states, scores, logprobs, {(c.row, c.token) for c in candidates})
        candidates.sort(key=lambda c: (-c.total, c.token, c.row))
        self.competing = [0] * (1 + len(self.constraint.tokens))
        for candidate in candidates:
            candidate.bank = self.constraint.advance(states[candidate.row], candidate.token).count
            candidate.place = self.competing[candidate.bank]
            self.competing[candidate.bank] += 1
        self.slots, self.living = slots_per_bank(self.width, self.competing), [0] * len(self.competing)
        for candidate in candidates:
            candidate.may_finish = candidate.place < self.slots[candidate.bank]
        if self.constraint.tokens:
            self._record_slots()
        return candidates

    def _overall(self, scores: torch.Tensor, logprobs: torch.Tensor) -> list[Candidate]:
        """The `width` best continuations that stay live, and those ranked before them that end a text."""
        best, living = [], 0
        for candidate in super()._best(scores, logprobs):
            ends = candidate.token in self.lane.eos
            if candidate.may_finish or (not ends and living < self.width):
                best.append(candidate)
            living += not ends
        return best

    def _of_each(
        self, states: list[Met], scores: torch.Tensor, logprobs: torch.Tensor, there: set[tuple[int, int]]
    ) -> list[Banked]:
        """For each hypothesis its most likely token and those that make progress, except those already
        `there`.
        """
        sums = torch.tensor(self.totals, dtype=scores.dtype, device=scores.device)[:, None] + scores
        more = []
        for row, state in enumerate(states):
            for token in dict.fromkeys((*self.constraint.allowed(state), int(scores[row].argmax()))):
                total, logprob = float(sums[row, token]), float(logprobs[row, token])
                if (row, token) not in there and total > -math.inf:
                    penalty = self.penalties[row] + logprob - float(scores[row, token])
                    more.append(Banked(total, penalty, logprob, row, token))
        return more

    def _lives_on(self, candidate: Banked, kept: int) -> bool:
        """Whether its bank has a slot left for an unfinished candidate."""
        if self.living[candidate.bank] == self.slots[candidate.bank]:
            return False
        self.living[candidate.bank] += 1
        return True

    def _why_pruned(self, candidate: Banked, slot: int, count: int, ends: bool) -> str:
        """The candidate's rank in its bank, and the slots of that bank."""
        bank, place = candidate.bank, candidate.place + 1
        here = f"rank {place} of {self.competing[bank]} in bank {bank}"
        return f"{here}, which has {many(self.slots[bank], 'slot')}" + (" for texts that end" if ends else "")

    def _record_slots(self) -> None:
        """Records what each bank got: slots, and how many compete for them."""
        for bank, (slots, competing) in enumerate(zip(self.slots, self.competing, strict=True)):
            parts = {"candidates": float(competing)}
            self.lane.record_measure(
                self.lane.tip, ScoreName.BANK_SLOTS, float(slots), level=name(bank), number=bank, **parts
            )

    def record_met(self, before: list[int]) -> None:
        """Records the bank of each hypothesis just kept, and how many tokens it met and un-met."""
        parents = self.lane.tree.parents
        ended = [h.node for h in self.finished if parents[h.node] in before]
        for node in (*self.live, *ended):
            now, then = self.met(node), self.met(parents[node])
            lost = sum(was and not still for was, still in zip(then.flags, now.flags, strict=True))
            gained = sum(still and not was for was, still in zip(then.flags, now.flags, strict=True))
            parts = {"newly met": float(gained), "no longer met": float(lost)}
            self.lane.record_measure(
                node, ScoreName.MET, float(now.count), level=name(now.count), number=now.count, **parts
            )


def name(bank: int) -> str:
    """A bank as the trace names it."""
    return f"bank {bank}"


def unreadable(parameters: dict, target) -> str | None:
    """The message to show if the phrases cannot be tokens of this model."""
    cut, vocabulary = target.cut, target.engine.vocabulary
    try:
        phrases_of(parameters["phrases"], cut, vocabulary, frozenset(target.eos))
    except Refusal as error:
        return str(error)
    return None


@strategy(
    name="dba",
    title="Dynamic beam allocation",
    family="search",
    parameters=(
        free_text(
            "phrases",
            "",
            "Words that the text must contain, such as dog, red ball; each gets a space before it, unless "
            "it is in double quotes.",
        ),
        integer("num_beams", 8, "Hypotheses kept at each position, all banks together.", low=1, high=64),
        switch("retry", True, "A token that breaks a phrase may start a phrase again."),
        LENGTH_PENALTY,
        EARLY_STOPPING,
        RETURNED,
        *PENALTIES,
    ),
    together=too_many_returned,
    suits=unreadable,
    papers=("fast-lexically-constrained-decoding-with-dynamic-beam",),
    view="banks",
    badge=lambda parameters: "deterministic" if parameters["phrases"].strip() else "equal to generate",
    parts=lambda parameters: [
        Part(
            "constraint",
            "phrases",
            "A text may end only once it contains every phrase.",
        ),
        Part(
            "frontier",
            "banked beams",
            "num_beams slots, divided again at each step by the number of phrase tokens met.",
        ),
    ],
)
def dba(lane: Lane) -> Iterator[None]:
    """Beam search whose texts must contain given phrases; its slots are divided by how much of them is met.

    The phrases have C tokens in total, and bank b, from 0 to C, holds the texts that have met b of them.

    1. One forward scores all live texts, whatever C is.
    2. The candidates are the num_beams most likely continuations, and for each text its most likely one and
       all tokens that meet one more: the next token of the phrase that it is in, else the first token of each
       unmet phrase.
    3. Each bank gets `num_beams / (C + 1)` slots, and the remainder goes to bank C; slots that a bank cannot
       fill go to the bank before it. The most likely candidates of a bank take its slots.
    4. If a text leaves a phrase before its end, the phrase is unmet again; with retry the same token may
       start a phrase.
    5. A text may end in bank C only. It ends as in beam search, with the score `S / t ** length_penalty`.

    At the limit of new tokens all texts end; those that have met the most come first. Without phrases this is
    beam search. Penalties and forbidden words are applied before the banks are filled.
    """
    cut, vocabulary = lane.models["target"].cut, lane.models["target"].engine.vocabulary
    phrases = phrases_of(lane.parameters["phrases"], cut, vocabulary)
    beams = BankedBeams(
        lane, lane.parameters["num_beams"], LexicalConstraint(phrases, lane.parameters["retry"])
    )
    if not phrases:
        lane.note("No phrases are asked for, so this is plain beam search.")
    while leaves := beams.live:
        logprobs = lane.distribution(leaves, lane.score(leaves))  # [B, V]
        scores = lane.process(logprobs, leaves)
        if scores is not logprobs:
            if not scores.isfinite().any():
                lane.ended_by = NOTHING_LEFT
                return
            record_processed(lane, leaves, scores)
        beams.advance(scores, logprobs)
        if phrases:
            beams.record_met(leaves)
        if not beams.live:
            record_missing(lane, beams)
        close_step(lane, [beams])
        yield


def record_missing(lane: Lane, beams: BankedBeams) -> None:
    """Notes what the answer lacks, if the limit was reached first."""
    if not beams.finished or beams.constraint.may_end(met := beams.met(beams.finished[0].node)):
        return
    words = lane.models["target"].bytes_of
    missing = [words(t) for t, there in zip(beams.constraint.tokens, met.flags, strict=True) if not there]
    text = b"".join(missing).decode(errors="replace").strip()
    lane.note(
        f"{many(len(missing), 'token')} of the phrases {'is' if len(missing) == 1 else 'are'} not in the "
        f"text: {text!r}. The limit of {lane.budget} new tokens came first; allow more."
    )
