"""SpecDec: a model that fills a whole block at once drafts, and the target also accepts tokens close to its
best.

Xia et al. (2022), Speculative Decoding: Exploiting Speculative Execution for Accelerating Seq2seq Generation.
Spec-Verification is theirs. Their Spec-Drafter is an encoder-decoder for the one task of its target; here the
shipped masked-diffusion model fills masks after prompt and output.
"""

from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest_verifier
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.masked_block import block, note_if_missing
from decoders.speculative.interfaces import (
    FIXED,
    TIMED_VIEWS,
    Drafter,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.relaxed_walk import OWN, go_down
from decoders.strategy import Parameter
from decoders.trace.number_format import number


def nearly_best(beta: int, tau: float, temperature: float) -> Verifier:
    """Spec-Verification: a drafted token passes if it is among the target's `beta` most likely and at most
    `tau` nats below the best of them; at the first that does not, and after a whole draft, the target writes
    its own. With a beta of 1 or a tau of 0 this is the usual exact test.
    """
    if beta == 1 or tau == 0.0:
        return simplest_verifier(FIXED, temperature)

    def rule(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        logprobs, token = inputs.probs[node].log(), inputs.tokens[child]
        rank, gap = 1 + int((logprobs > logprobs[token]).sum()), float(logprobs.max() - logprobs[token])
        accepted = rank <= beta and gap <= tau
        limit = f"{number(tau)} nat{'' if tau == 1 else 's'}"
        reason = f"The target's rank {rank}, {number(gap)} nats below its best: " + (
            "it passes." if accepted else f"it passes up to rank {beta} and {limit}."
        )
        return TokenTest(
            child, accepted, float(logprobs[token].exp()), reason=reason, watched=("gap", gap, tau)
        )

    def own(inputs: VerifierInput, node: int) -> torch.Tensor:
        return inputs.p[node]

    def distribution(inputs: VerifierInput, node: int) -> torch.Tensor:
        """The drafted token for certain if it passes; else p."""
        for child in inputs.children(node):
            if rule(inputs, node, child, (0, 0)).accepted:
                return torch.nn.functional.one_hot(
                    torch.tensor(inputs.tokens[child]), len(inputs.p[node])
                ).to(inputs.p[node])
        return inputs.p[node]

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, rule, own, OWN, temperature == 0.0)

    return Verifier(
        verify,
        frozenset(),
        name="nearly the best",
        relaxed_for=frozenset({FIXED}),
        distribution=distribution,
        says=f"A drafted token passes if it is among the target's {beta} most likely and at most "
        f"{number(tau)} nats below the best.",
    )


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A block from the masked model that comes with the target, and Spec-Verification."""
    temperature = parameters["temperature"]
    drafter = block(parameters["num_assistant_tokens"])
    return drafter, nearly_best(parameters["beta"], parameters["tau"], temperature), temperature


@draft_and_verify(
    parts,
    name="specdec",
    title="SpecDec",
    parameters=(
        Parameter("num_assistant_tokens", "int", 8, "Masks that are filled per round.", low=1, high=64),
        Parameter(
            "beta",
            "int",
            3,
            "A guess must be among this many of the target's most likely tokens; 1 is lossless.",
            low=1,
            high=64,
        ),
        Parameter(
            "tau",
            "float",
            1.0,
            "How many nats below the best a guess may be; 0 is lossless.",
            low=0.0,
            high=100.0,
        ),
        *GREEDY,
    ),
    papers=("speculative-decoding",),
    views=("target_top_tokens", *TIMED_VIEWS),
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
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
