"""The sampling rule of the recurrent drafter as it was published (Zhang et al. 2024; the authors' code): a
coin p / q for every entry of every beam. Biased: beams were not drawn from q, and a token that several beams
share gets several coins.
"""

import torch

from decoders.explain import verifiers
from decoders.logits.distributions import residual
from decoders.speculative.interfaces import FIXED, TokenTest, Verification, Verifier, VerifierInput
from decoders.trace.events import acceptance
from decoders.trace.reasons import Code, Reason


def chains(inputs: VerifierInput) -> list[list[int]]:
    """The paths of the draft from the root's child to each leaf, in the order of the leaves' birth."""
    paths = {inputs.draft.root: []}
    for node in (inputs.draft.root, *inputs.draft.nodes):
        for child in inputs.children(node):
            paths[child] = [*paths[node], child]
    return [path for node, path in paths.items() if path and not inputs.children(node)]


def verify(inputs: VerifierInput) -> Verification:
    """Every beam's entries are tested with coins of their own; the beam with the longest accepted prefix is
    kept, on ties the first. Then a token from norm(max(p - q, 0)), or from p if the whole beam passed.
    """
    best, tests = [], []  # the accepted prefix; (whether it is of that beam, tests) per beam
    for row, chain in enumerate(chains(inputs)):
        node, own, passed = inputs.draft.root, [], []
        for depth, child in enumerate(chain, start=inputs.position + 1):
            token, q_row = inputs.tokens[child], inputs.guessed(node)
            p, q = float(inputs.p[node][token]), float(q_row[token])
            probability = acceptance(p, q)
            accepted, u = inputs.chooser.bernoulli(probability, ("accept", depth, "beam", row))
            reason = Reason(Code.BEAM_COIN, {"p": p, "q": q, "probability": probability})
            own.append(TokenTest(child, bool(accepted), p, q, u, (reason,)))
            if not accepted:
                break
            passed.append(child)
            node = child
        tests.append(own)
        if row == 0 or len(passed) > len(best):
            best, kept = passed, row
    verification = Verification(path=best)
    if not tests:
        return verification.end(inputs, inputs.p[inputs.draft.root], inputs.position + 1)
    order = [own for row, own in enumerate(tests) if row != kept]
    verification.tests = [test for own in (*order, tests[kept]) for test in own]
    for test in verification.tests:
        if test.accepted and test.node not in best:
            test.accepted, test.reasons = False, (*test.reasons, Reason(Code.OTHER_BEAM))
    node = best[-1] if best else inputs.draft.root
    if node not in inputs.p:
        return verification  # an end-of-text token
    whole = not inputs.children(node)
    rest = None if whole else residual(inputs.p[node], inputs.guessed(node))
    left: torch.Tensor = inputs.p[node] if rest is None else rest
    depth = inputs.position + len(best) + 1
    return verification.end(inputs, left, depth, Code.ALL_ACCEPTED if whole else Code.RESIDUAL)


BEAM_COINS = Verifier(verify, frozenset(), *verifiers.BEAM_COINS, relaxed_for=frozenset({FIXED}))
