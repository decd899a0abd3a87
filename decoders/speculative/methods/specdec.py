"""SpecDec: a model that fills a whole block at once drafts, and the target also accepts tokens close to its
best.

Xia et al. (2022), Speculative Decoding: Exploiting Speculative Execution for Accelerating Seq2seq Generation.
Spec-Verification is theirs. Their Spec-Drafter is an encoder-decoder for the one task of its target; here the
shipped masked-diffusion model fills masks after prompt and output.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest_verifier
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.masked_block import block, note_if_missing
from decoders.speculative.interfaces import FIXED, Pair, TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed import FromTarget
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName


@dataclass(frozen=True)
class NearlyBest(FromTarget):
    """A token passes if it is among the target's `beta` most likely and at most `tau` nats below the best of
    them.
    """

    beta: int
    tau: float

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        logprobs = p.log().clamp(min=MIN_LOGPROB)  # tokens outside top-k have probability 0
        rank, gap = 1 + int((logprobs > logprobs[token]).sum()), float(logprobs.max() - logprobs[token])
        accepted = rank <= self.beta and gap <= self.tau
        numbers = {"rank": rank, "gap": gap, "beta": self.beta, "tau": self.tau, "accepted": accepted}
        reason = Reason(Code.NEARLY_BEST, numbers)
        watched = (ScoreName.GAP, gap, self.tau)
        return TokenTest(place.child, accepted, float(p[token]), reasons=(reason,), watched=watched)

    def distribution(self, inputs: VerifierInput, node: int) -> torch.Tensor:
        """The drafted token for certain if it passes; else p."""
        p, place = inputs.p[node], Place(inputs, node, inputs.position + 1, self.greedy)
        for place.child in inputs.children(node):
            token = inputs.tokens[place.child]
            if self.test(inputs.probs[node], None, token, place).accepted:
                return torch.nn.functional.one_hot(torch.tensor(token), len(p)).to(p)
        return p


def nearly_best(beta: int, tau: float, temperature: float) -> Verifier:
    """Spec-Verification: a drafted token passes if it is among the target's `beta` most likely and at most
    `tau` nats below the best of them; at the first that does not, and after a whole draft, the target writes
    its own. With a beta of 1 or a tau of 0 this is the usual exact test.
    """
    if beta == 1 or tau == 0.0:
        return simplest_verifier(FIXED, temperature)

    rule = NearlyBest(temperature == 0.0, beta, tau)
    return by_rule(
        rule,
        name="nearly the best",
        says=f"A drafted token passes if it is among the target's {beta} most likely and at most "
        f"{number(tau)} nats below the best.",
        relaxed_for=frozenset({FIXED}),
        distribution=rule.distribution,
    )


def specdec_pair(parameters: dict) -> Pair:
    """A block from the masked model that comes with the target, and Spec-Verification."""
    drafter = block(parameters["num_assistant_tokens"])
    return drafter, nearly_best(parameters["beta"], parameters["tau"], parameters["temperature"])


@draft_and_verify(
    specdec_pair,
    name="specdec",
    title="SpecDec",
    parameters=(
        integer("num_assistant_tokens", 8, "Masks that are filled per round.", low=1, high=64),
        integer(
            "beta",
            3,
            "A guess must be among this many of the target's most likely tokens; 1 is lossless.",
            low=1,
            high=64,
        ),
        real("tau", 1.0, "How many nats below the best a guess may be; 0 is lossless.", low=0.0, high=100.0),
        *GREEDY,
    ),
    papers=("speculative-decoding",),
    view="target_top_tokens",
)
def specdec(lane: Lane) -> Iterator[None]:
    """A masked-diffusion model drafts a block in one forward; the target accepts near-best tokens.

    1. num_assistant_tokens masks follow the text so far. A bidirectional model reads all of it once and
       replaces each mask with its most likely token. No guess has seen the others.
    2. The target reads text and guesses in one forward. A guess x passes if it is among its beta most likely
       tokens and `log p(best) - log p(x) <= tau`.
    3. The first guess that does not pass is replaced by the target's own token; after a block that passed
       completely the target adds one.

    With a beta of 1 or a tau of 0 only the best passes, and at temperature 0 the text is greedy's. Otherwise
    the text deviates, and the lane says how often. The paper drafts with an encoder-decoder that its target
    taught, for one task, with some of the block revealed in training and queries that distinguish the masks.
    Here the drafter is the masked-diffusion model that comes with the project, which was trained on texts; if
    no such model has the target's vocabulary, the target writes alone, and the lane says so.
    """
    note_if_missing(lane)
    drafter, verifier = specdec_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
