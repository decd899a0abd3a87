"""Assisted generation and prompt lookup by `generate`: each round's draft, its tests and the token after it.

What was accepted and which token follows is read from transformers' output; our own verifiers, given these
outcomes in place of draws, explain them, and `record_verdicts` records them as for our strategies.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.chooser import Draw, Tag
from decoders.logits.distributions import probabilities
from decoders.speculative.draft_verify_loop import record_verdicts
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Verification, Verifier, VerifierInput
from decoders.speculative.methods.prompt_lookup import look_up, record_source
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.watch.draws import Snapshot
from decoders.watch.mode import Mode, Rows


@dataclass
class Round:
    """One round: the draft below the newest token, and the target's scores after each of its places."""

    draft: Draft
    tokens: list[int] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    draft_scores: torch.Tensor | None = None  # [K, V]
    before_draws: Snapshot | None = None


class Assisted(Mode):
    """One text; a candidate generator proposes, the target tests."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.recording = self.recordings[0]
        self.round: Round | None = None

    def kind(self, role: str) -> str:
        return "verify" if self.round and self.round.tokens else super().kind(role)

    def drafted(self, given: dict[str, Any], result: tuple) -> None:
        """Records the draft."""
        recording, (ids, scores) = self.recording, result
        tokens = ids[0, given["input_ids"].shape[1] :].tolist()
        self.round = one = Round(Draft(recording.tip), tokens)
        looked_up = self.config.prompt_lookup_num_tokens is not None
        if tokens and scores is not None:
            one.draft_scores = scores[0].float()
            logprobs = one.draft_scores.log_softmax(-1)
        drawn = one.draft_scores is not None and self.config.do_sample
        how = {"source": "prompt" if looked_up else "draft", "fill": SAMPLED if drawn else FIXED}
        path = recording.tree.path(recording.tip)
        parent = recording.tip
        for place, token in enumerate(tokens):
            logprob = None if one.draft_scores is None else float(logprobs[place, token])
            parent = one.draft.propose(recording, parent, token, logprob, **how)
        if looked_up and tokens:
            self._record_source(path, tokens)

    def _record_source(self, path: list[int], tokens: list[int]) -> None:
        """From where the draft was copied, if it is the place that the same search finds in our text."""
        text = [self.recording.tree.tokens[node] for node in path]
        start, n = look_up(text, self.config.max_matching_ngram_size or 2)
        if text[start : start + len(tokens)] == tokens:
            record_source(self.recording, self.round.draft.nodes, path, start, n)

    def scored(self, rows: Rows) -> None:
        """The target's scores at one more place of the round."""
        self.round.rows.append(rows)
        if self.round.draft_scores is not None and self.config.do_sample:
            self.round.before_draws = Snapshot(rows.last.device)  # the next draw is that of the tests

    def verified(self, given: dict[str, Any], result: None) -> None:
        """Records the tests, what was accepted and the target's own token, and closes the step."""
        recording, one = self.recording, self.round
        written = given["input_ids"][0, self.columns + recording.written :].tolist()
        accepted = matching(one.tokens, written)
        seen = [one.draft.root, *one.draft.nodes][: len(written)]
        raw = torch.cat([rows.raw for rows in one.rows[: len(written)]])  # [visited, V]
        last = torch.cat([rows.last for rows in one.rows[: len(written)]])
        if one.draft_scores is not None:
            one.draft.scores = dict(zip([one.draft.root, *one.draft.nodes], one.draft_scores, strict=False))
            one.draft.record(recording)
        verification = self._explained(one, seen, written, accepted, last)
        if (
            verification.path != one.draft.nodes[:accepted]
            or [*one.tokens[:accepted], verification.token][: len(written)] != written
        ):
            raise ValueError(f"its round wrote {written}, which its verifier does not explain")
        logprobs = recording.distribution(seen, raw)
        if one.rows[0].stages:
            recording.distribution(seen, last, "processed")
        committed = record_verdicts(
            recording, one.draft, verification, dict(zip(seen, logprobs, strict=True))
        )
        rows = zip(logprobs, written, strict=True)
        recording.commit(committed, [float(row[token]) for row, token in rows])
        recording.close_step()

    def _explained(
        self, one: Round, seen: list[int], written: list[int], accepted: int, scores: torch.Tensor
    ) -> Verification:
        """The tests of the round with their numbers and reasons. scores [visited, V]: processed."""
        draft, weight = one.draft, getattr(self.config, "assistant_ensemble_weight", None)
        drawn = one.draft_scores is not None and self.config.do_sample
        p = probabilities(scores)
        if drawn:
            q = probabilities(one.draft_scores)
            draft.q = dict(zip([draft.root, *draft.nodes[:-1]], q, strict=True))
        outcomes = Outcomes(self.recording.tree.depths[draft.root], one.tokens, written)
        if drawn and one.before_draws:
            outcomes.us = self._draws(one, p, q, accepted, weight)
        if not self.config.do_sample:  # a distribution with all its mass on what was taken
            p = torch.zeros_like(p).scatter_(-1, torch.tensor(written, device=p.device)[:, None], 1.0)
        verifier = self._verifier(drawn)
        inputs = VerifierInput(
            draft, self.recording.tree.tokens, dict(zip(seen, p, strict=True)), outcomes, outcomes.depth
        )
        verification = verifier.verify(inputs)
        if weight is not None:  # then p / q is not what decides
            verification.reason = None
            for test in verification.tests:
                test.reasons = ()
                if drawn:
                    test.threshold = min(1.0, 1.0 - weight + weight * test.p / test.q)
        return verification

    def _verifier(self, drawn: bool) -> Verifier:
        if not self.config.do_sample:
            return GREEDY_MATCH
        return RECURSIVE_REJECTION if drawn else NODE_SAMPLING

    def _draws(
        self, one: Round, p: torch.Tensor, q: torch.Tensor, accepted: int, weight: float | None
    ) -> list[float] | None:
        """The numbers u of the round's tests, drawn again from the state that the random generator had before
        them. None if they would not have decided as transformers did.
        """
        us = one.before_draws.uniforms(len(one.tokens))
        share = 1.0 if weight is None else weight
        for place in range(min(accepted + 1, len(one.tokens), len(p))):
            ratio = float(p[place, one.tokens[place]] / q[place, one.tokens[place]])
            if (us[place] <= 1.0 - share + share * ratio) != (place < accepted):
                return None
        return us

    def end(self, sentence: str | None = None) -> None:
        """A round that was cut off tested nothing."""
        one = self.round
        if one and self.recording.open and self.recording.tip == one.draft.root:
            for node in one.draft.nodes:
                self.recording.verdict(node, "never reached", q=one.draft.probability.get(node))
        super().end(sentence)


class Outcomes:
    """A chooser that gives what transformers drew: which tests passed, and which token was written."""

    def __init__(self, depth: int, drafted: list[int], written: list[int]):
        """depth: of the newest token before the round."""
        self.depth, self.drafted, self.written = depth, drafted, written
        self.us: list[float] | None = None

    def bernoulli(self, probability: float, tag: Tag) -> Draw:
        """Whether the drafted token at this depth was accepted, and the number that decided."""
        place = tag[1] - self.depth - 1
        return Draw(self.drafted[place] == self.written[place], None if self.us is None else self.us[place])

    def categorical(self, weights: torch.Tensor, tag: Tag) -> Draw:
        """The token that was written at this depth."""
        return Draw(self.written[tag[1] - self.depth - 1], None)

    def uniforms(self, count: int, tag: Tag) -> torch.Tensor:
        """None of the verifiers that explain asks for numbers alone."""
        raise NotImplementedError


def matching(drafted: list[int], written: list[int]) -> int:
    """How many drafted tokens were written."""
    pairs = list(zip(drafted, written, strict=False))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(pairs))
