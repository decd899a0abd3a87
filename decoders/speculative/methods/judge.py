"""Judge decoding: a drafted token also passes if a small trained head finds it right, whatever the target
would have written.

Bachmann et al. (2025), Judge Decoding. The head is heads/scorers/judge.py; the model knows which one fits a
target. After a token that fails both tests, sampled text continues from the usual residual. This is our
reading, as the paper decodes greedily.
"""

from collections.abc import Callable, Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import residual
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import (
    FIXED,
    RELAXED_VIEWS,
    SAMPLED,
    WANTED_MORE,
    Drafter,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.recursive_rejection import sentence
from decoders.speculative.verifiers.relaxed_walk import go_down
from decoders.strategy import Parameter
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import number

SCORE = "judged right"
MISSING = (
    "No judge comes with the project for the target {!r}: the ordinary test alone decides. "
    "docs/heads.md says how to train one."
)
LIKELIEST, OTHER = "It is the target's most likely token here.", "The target prefers another token here."
# A state [d] of the target after a token -> how likely the token is right.
Judge = Callable[[torch.Tensor], float]


def judged_acceptance(delta: float, temperature: float, judge: Judge | None = None) -> Verifier:
    """The verifier that accepts what the ordinary test accepts or `judge` gives more than `delta`. Without a
    judge, or with a delta of 1, it is the ordinary test: greedy match at temperature 0, token rejection else.
    """
    fill = frozenset({FIXED if temperature == 0.0 else SAMPLED})

    def right(inputs: VerifierInput, child: int) -> float | None:
        """The judge's verdict on a drafted token; None if it is not asked."""
        state = inputs.states.get(child)
        return None if state is None or judge is None else float(judge(state))

    def ordinary(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token = inputs.tokens[child]
        if temperature == 0.0:
            accepted, p = bool(inputs.p[node][token] == 1.0), float(inputs.probs[node][token])
            return TokenTest(child, accepted, p, reason=LIKELIEST if accepted else OTHER)
        p, q = float(inputs.p[node][token]), float(inputs.draft.q[node][token])
        accepted, u = inputs.chooser.bernoulli(acceptance(p, q), ("accept", *at))
        return TokenTest(child, bool(accepted), p, q, u, sentence(p, q, u, bool(accepted), 0))

    def rule(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        test, score = ordinary(inputs, node, child, at), right(inputs, child)
        if score is None:
            return test
        test.watched = (SCORE, score, delta)
        if not test.accepted:
            opinion = f"rates it {number(score)}, limit {number(delta)}"
            test.accepted = score > delta
            fate = "is accepted all the same" if test.accepted else "stays rejected"
            test.reason += f" The judge {opinion}: it {fate}."
        return test

    def left(inputs: VerifierInput, node: int) -> torch.Tensor:
        rest = residual(inputs.p[node], inputs.draft.q[node])
        return inputs.p[node] if rest is None else rest

    def divergence_estimate(inputs: VerifierInput, node: int) -> float:
        """Only the judge's verdict on the drafted token is known of the distribution. The distribution
        exceeds p by q - p on the tokens that the judge likes and the draft overrates, so that the distance is
        the mean, over what the draft draws, of max(0, 1 - p/q) where the judge likes it.
        """
        (child,) = inputs.children(node)
        score, token = right(inputs, child), inputs.tokens[child]
        if score is None or score <= delta:
            return 0.0
        return max(0.0, 1.0 - float(inputs.p[node][token]) / float(inputs.draft.q[node][token]))

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, rule, left, WANTED_MORE, temperature == 0.0)

    return Verifier(
        verify,
        fill if delta == 1.0 else frozenset(),
        name="judge",
        relaxed_for=fill,
        divergence_estimate=divergence_estimate,
        reads_states=judge is not None,
        says=f"A drafted token passes if the ordinary test accepts it, or if a trained head gives it a "
        f"probability of being correct above {number(delta)}.",
    )


def parts(parameters: dict, judge: Judge | None = None) -> tuple[Drafter, Verifier, float]:
    """A chain from the draft model, and the relaxed rule; what they promise does not depend on the judge."""
    temperature = parameters["temperature"]
    verifier = judged_acceptance(parameters["delta"], temperature, judge)
    return draft_chain(parameters), verifier, temperature


@draft_and_verify(
    parts,
    name="judge",
    title="Judge decoding",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "delta",
            "float",
            0.5,
            "Probability of being correct that the judge must exceed; 1 is lossless.",
            low=0.0,
            high=1.0,
        ),
        Parameter(
            "num_assistant_tokens", "int", 8, "Tokens that the draft guesses per round.", low=1, high=64
        ),
        *GREEDY,
    ),
    papers=("judge-decoding",),
    views=RELAXED_VIEWS,
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
    head = getattr(lane.models["target"], "judge", None)
    if head is None:
        lane.note(MISSING.format(lane.models["target"].name))
    drafter, verifier, _ = parts(lane.parameters, head.scores if head is not None else None)
    yield from rounds(lane, drafter, verifier)
