"""Judge decoding: a drafted token also passes if a small trained head finds it right, whatever the target
would have written.

Bachmann et al. (2025), Judge Decoding. The head is heads/scorers/judge.py; the model knows which one fits a
target. After a token that fails both tests, sampled text continues from the usual residual. This is our
reading, as the paper decodes greedily.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import Pair, TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.recursive_rejection import ratio_test
from decoders.speculative.verifiers.relaxed import Relaxed, residual_or_p
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName

MISSING = (
    "No judge comes with the project for the target {!r}: the ordinary test alone decides. "
    "docs/heads.md says how to train one."
)
# A state [d] of the target after a token -> how likely the token is right.
Judge = Callable[[torch.Tensor], float]


@dataclass(frozen=True)
class Judged(Relaxed):
    """A token passes if the ordinary test accepts it or `judge` gives it more than `delta`. Without a judge,
    or with a delta of 1, it is the ordinary test: greedy match at temperature 0, token rejection else.
    """

    delta: float
    judge: Judge | None

    @property
    def exact_for(self) -> frozenset[str]:
        return self.fill if self.delta == 1.0 else frozenset()

    def score(self, inputs: VerifierInput, child: int) -> float | None:
        """The judge's verdict on a drafted token; None if it is not asked."""
        state = inputs.states.get(child)
        return None if state is None or self.judge is None else float(self.judge(state))

    def ordinary(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        """The test without a judge."""
        if not self.greedy:
            return ratio_test(p, q, token, place)
        accepted = token == place.own(p).value
        reason = Reason(Code.IS_ARGMAX if accepted else Code.IS_NOT_ARGMAX)
        return TokenTest(place.child, accepted, float(p[token]), reasons=(reason,))

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        test, score = self.ordinary(p, q, token, place), self.score(place.inputs, place.child)
        if score is None:
            return test
        test.watched = (ScoreName.JUDGED, score, self.delta)
        if not test.accepted:
            test.accepted = score > self.delta
            test.reasons += (Reason(Code.JUDGE, {"score": score, "delta": self.delta}),)
        return test

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor:
        return p if self.greedy else residual_or_p(p, q)

    def divergence_estimate(self, inputs: VerifierInput, node: int) -> float:
        """The judge's verdict is known for the drafted token only. The distribution exceeds p by q - p on the
        tokens that the judge likes and the draft overrates. So the distance is the mean over the draft's
        draws of max(0, 1 - p/q) where the judge likes the token, and 0 elsewhere.
        """
        (child,) = inputs.children(node)
        score, token = self.score(inputs, child), inputs.tokens[child]
        if score is None or score <= self.delta:
            return 0.0
        return max(0.0, 1.0 - float(inputs.p[node][token]) / float(inputs.draft.q[node][token]))


def judged_acceptance(delta: float, temperature: float, judge: Judge | None = None) -> Verifier:
    """The verifier for one `delta`."""
    rule = Judged(temperature == 0.0, delta, judge)
    return by_rule(
        rule,
        name="judge",
        says=f"A drafted token passes if the ordinary test accepts it, or if a trained head gives it a "
        f"probability of being correct above {number(delta)}.",
        relaxed_for=rule.fill,
        divergence_estimate=rule.divergence_estimate,
        reads=(Capability.HIDDEN_STATES,) if judge is not None else (),
    )


def judge_pair(parameters: dict, judge: Judge | None = None) -> Pair:
    """A chain from the draft model, and the relaxed rule; what they promise does not depend on the judge."""
    verifier = judged_acceptance(parameters["delta"], parameters["temperature"], judge)
    return draft_chain(parameters), verifier


@draft_and_verify(
    judge_pair,
    name="judge",
    title="Judge decoding",
    parameters=(
        real(
            "delta",
            0.5,
            "Probability of being correct that the judge must exceed; 1 is lossless.",
            low=0.0,
            high=1.0,
        ),
        integer("num_assistant_tokens", 8, "Tokens that the draft guesses per round.", low=1, high=64),
        *GREEDY,
    ),
    papers=("judge-decoding",),
)
def judge(lane: Lane) -> Iterator[None]:
    """Accepts a drafted token by the usual test, or if a small trained head judges it correct.

    1. The draft guesses a chain, and the target reads it in one forward, as in speculative decoding. That
       forward leaves the target's state after each guess.
    2. A guess passes if the ordinary test accepts it, or if the head, reading its state, gives it a
       probability of being correct above delta. Everything after the first guess that fails both is
       discarded.
    3. There the target writes a token of its own: its most likely one, or one drawn from the residual. After
       a chain that was fully accepted it writes one more.

    The head, one linear layer, was trained on answers to the checkable tasks: correct ones, and those of the
    draft up to the token with which they went wrong. On stories nothing is right or wrong, and it was not
    trained on them. delta 1 is lossless, 0 keeps everything drafted except ends of text; in between, the lane
    says how far its tokens deviate.
    """
    head = lane.models["target"].heads.get("judge")
    if head is None:
        lane.note(MISSING.format(lane.models["target"].name))
    drafter, verifier = judge_pair(lane.parameters, head.scores if head is not None else None)
    yield from rounds(lane, drafter, verifier)
