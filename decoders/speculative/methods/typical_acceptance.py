"""Typical acceptance: a drafted token passes if the target finds it likely enough, by a threshold that falls
as the target becomes less certain.

Cai et al. (2024), Medusa, section 3.2: p(x) > min(epsilon, delta exp(-H(p))), H the entropy in nats. The text
follows the draft wherever that holds.
"""

import math

import torch

from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    Pair,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.relaxed import relaxed_distribution
from decoders.strategy import PartId
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName


def threshold(p: torch.Tensor, epsilon: float, delta: float) -> float:
    """min(epsilon, delta exp(-H)) of a distribution p [V]."""
    return min(epsilon, delta * math.exp(-float(torch.special.entr(p).sum())))


def typical(epsilon: float, delta: float, temperature: float) -> Verifier:
    """The verifier for Medusa's two thresholds. Of the paths from the root that pass, the longest is kept, of
    equally long ones the most likely; the target's own token comes from p.
    """

    def verify(inputs: VerifierInput) -> Verification:
        verification, root = Verification(), inputs.draft.root
        reached, weight = {root: []}, {root: 0.0}  # place -> path to it, and its sum of log p
        for node in (root, *inputs.draft.nodes):
            if node not in reached or node not in inputs.p:
                continue
            p = inputs.probs[node]
            line = threshold(p, epsilon, delta)
            for child in inputs.children(node):
                p_token = float(p[inputs.tokens[child]])
                reason = Reason(Code.TYPICAL, {"p": p_token, "line": line})
                watched = (ScoreName.P_TOKEN, p_token, line)
                verification.tests.append(
                    TokenTest(child, p_token > line, p_token, reasons=(reason,), watched=watched)
                )
                if p_token > line:
                    reached[child] = [*reached[node], child]
                    weight[child] = weight[node] + math.log(p_token)
        end = max(reached, key=lambda n: (len(reached[n]), weight[n], -n))
        verification.path = reached[end]
        for test in verification.tests:
            if test.accepted and test.node not in verification.path:
                test.accepted, test.reasons = False, (*test.reasons, Reason(Code.OTHER_PATH))
        if end not in inputs.p:
            return verification  # an end-of-text token
        p, rejected = inputs.p[end], bool(inputs.children(end))
        if temperature == 0.0:
            verification.token = int(p.argmax())
            code = Code.ARGMAX_DID_NOT_PASS if rejected else Code.ARGMAX_AFTER_DRAFT
            verification.reason = Reason(code)
            return verification
        depth = inputs.position + len(verification.path) + 1
        return verification.end(inputs, p, depth, Code.TARGET if rejected else Code.ALL_ACCEPTED)

    def distribution(inputs: VerifierInput, node: int) -> torch.Tensor:
        p, q = inputs.p[node], inputs.draft.q[node]
        passes = torch.where(p > threshold(p, epsilon, delta), q, 0.0)
        return relaxed_distribution(passes, p)

    return Verifier(
        verify,
        frozenset(),
        name="typical acceptance",
        id=PartId.TYPICAL_ACCEPTANCE,
        relaxed_for=frozenset({FIXED, SAMPLED}),
        distribution=distribution,
        says=f"A drafted token passes if the target gives it more than {number(epsilon)}, or less where the "
        "target itself is uncertain.",
    )


@speculative(
    name="typical_acceptance",
    title="Typical acceptance",
    parameters=(
        real(
            "epsilon",
            0.09,
            "Upper bound of the threshold: a token with this probability always passes.",
            low=0.0,
            high=1.0,
        ),
        real(
            "delta",
            0.3,
            "Where the target is uncertain, the threshold is delta exp(-entropy); with epsilon and delta "
            "at their maximum it is lossless.",
            low=0.0,
            high=1e6,
        ),
        integer("num_assistant_tokens", 4, "Tokens that the draft guesses per round.", low=1, high=32),
        *GREEDY,
    ),
)
def typical_acceptance_pair(parameters: dict) -> Pair:
    """Accepts a drafted token if the target finds it likely enough; the threshold is lower at high entropy.

    1. The draft guesses a chain and the target scores it, as in speculative decoding.
    2. A guess x passes if `p(x) > min(epsilon, delta exp(-H))`, where H is the entropy of p.
    3. After the last guess that passes, the target adds a token of its own from p.

    It is the rule that Medusa offers in place of token rejection. The text follows the draft wherever the
    target finds the token plausible, so its distribution is not the target's; the lane says how far it
    deviates. With both thresholds at their largest no guess passes, and the target writes alone.
    """
    temperature = parameters["temperature"]
    return draft_chain(parameters), typical(parameters["epsilon"], parameters["delta"], temperature)
