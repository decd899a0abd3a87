"""The sampling rule of the recurrent drafter as it was published (Zhang et al. 2024; the authors' code): a
coin p / q for every entry of every beam. Biased: beams were not drawn from q, and a token that several beams
share gets several coins.
"""

import torch

from decoders.logits.distributions import residual
from decoders.speculative.interfaces import (
    FIXED,
    WANTED_MORE,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import number


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
            accepted, u = inputs.chooser.bernoulli(acceptance(p, q), ("accept", depth, "beam", row))
            reason = (
                f"The target gave {number(p)}, the drafter {number(q)}: by the published rule it passes "
                f"with {number(acceptance(p, q))}."
            )
            own.append(TokenTest(child, bool(accepted), p, q, u, reason))
            if not accepted:
                break
            passed.append(child)
            node = child
        tests.append(own)
        if row == 0 or len(passed) > len(best):
            best, kept = passed, row
    verification = Verification(path=best)
    if not tests:
        return verification.end(inputs, inputs.p[inputs.draft.root], inputs.position + 1, None)
    order = [own for row, own in enumerate(tests) if row != kept]
    verification.tests = [test for own in (*order, tests[kept]) for test in own]
    for test in verification.tests:
        if test.accepted and test.node not in best:
            test.accepted, test.reason = False, f"{test.reason} It did, but another beam is kept."
    node = best[-1] if best else inputs.draft.root
    if node not in inputs.p:
        return verification  # an end-of-text token
    whole = not inputs.children(node)
    rest = None if whole else residual(inputs.p[node], inputs.guessed(node))
    left: torch.Tensor = inputs.p[node] if rest is None else rest
    depth = inputs.position + len(best) + 1
    return verification.end(inputs, left, depth, None if whole else WANTED_MORE)


BEAM_COINS = Verifier(
    verify,
    exact_for=frozenset(),
    name="a coin for each entry of each beam",
    relaxed_for=frozenset({FIXED}),
    says="Each entry of each beam passes with min(1, p / q), and the longest prefix is kept. Biased.",
)
