"""Token rejection for several draws from the same distribution, or from several draft models: the rejection
of SpecInfer (Algorithm 2) and MCSD (RRS). A walk of its own, as a token may come up again.
"""

import torch

from decoders.explain import verifiers
from decoders.logits.distributions import residual
from decoders.speculative.interfaces import SAMPLED, WITH_REPLACEMENT, Verification, Verifier, VerifierInput
from decoders.speculative.verifiers.recursive_rejection import ratio_test
from decoders.speculative.verifiers.walk import Place
from decoders.trace.reasons import Code, Reason


def verify(inputs: VerifierInput) -> Verification:
    """At each node R = p; each draw in its order is accepted iff u D(x) < R(x), where D is the q of its own
    draft model. After a rejection R = norm(max(R - D, 0)). The target's own token comes from what is left of
    R.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    while node in inputs.p:
        place = Place(inputs, node, depth, greedy=False)
        left, drafted = inputs.p[node], inputs.draft.q.get(node)  # R, D: [V]
        offers, draw_probs = in_order(inputs, node, depth)
        for place.slot, place.child in enumerate(offers):
            drafted = draw_probs[place.slot] if draw_probs else drafted
            test = ratio_test(left, drafted, inputs.tokens[place.child], place)
            verification.tests.append(test)
            if test.accepted:
                break
            rest = residual(left, drafted)
            if rest is None:
                verification.note = Reason(Code.MODELS_AGREE)
            left = test.left = left if rest is None else rest
        else:
            return verification.end(inputs, left, depth, Code.RESIDUAL if offers else Code.ALL_ACCEPTED)
        verification.path.append(place.child)
        node, depth = place.child, depth + 1
    return verification


def in_order(inputs: VerifierInput, node: int, depth: int) -> tuple[list[int], list[torch.Tensor]]:
    """The draws below a node and their distributions [V], in the order in which they are tested: a random
    one, if they came from several draft models, so that none is preferred.
    """
    offers, draw_probs = list(inputs.offers(node)), list(inputs.drawn_from(node))
    if all(q is draw_probs[0] for q in draw_probs):  # they are equal, so their order does not matter
        return offers, draw_probs
    for place in range(len(offers) - 1):
        left = torch.ones(len(offers) - place)
        chosen = place + inputs.chooser.categorical(left, ("order", depth, place)).value
        for values in (offers, draw_probs):
            values[place], values[chosen] = values[chosen], values[place]
    return offers, draw_probs


WITH_REPLACEMENT_REJECTION = Verifier(
    verify, frozenset({SAMPLED, WITH_REPLACEMENT}), *verifiers.TOKEN_REJECTION_WITH_REPLACEMENT
)
