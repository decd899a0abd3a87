"""Verifier for deterministic drafts (lookup, top-k): the target draws its own token, and follows the draft if
it contains that token.

One draw per node, used in either case, hence exactly the target's distribution; accepts with the target's
mass on the children.
"""

from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    WITH_REPLACEMENT,
    WITHOUT_REPLACEMENT,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.trace.number_format import number


def verify(inputs: VerifierInput) -> Verification:
    """From the root down: y ~ p; descend into the child that carries y, else y is the target's own token and
    the walk ends.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    while node in inputs.p:
        p = inputs.p[node]  # [V]
        children = inputs.children(node)
        token, u = inputs.chooser.categorical(p, ("sample", depth))
        match = None
        for child in children:
            p_token = float(p[inputs.tokens[child]])
            if inputs.tokens[child] == token:
                match = child
                reason = f"Accepted: the target drew this token too, with probability {number(p_token)}."
            else:
                reason = (
                    f"Rejected: the target drew another token; this one had probability {number(p_token)}."
                )
            verification.tests.append(TokenTest(child, child == match, p_token, reason=reason))
        if match is None:
            p_drawn = float(p[token] / p.sum())
            verification.token, verification.u, verification.p = token, u, p_drawn
            verification.reason = (
                f"Drawn from the target's distribution with probability {number(p_drawn)}; it was not "
                "drafted."
                if children
                else f"All drafted tokens were accepted; the target drew one more, with probability "
                f"{number(p_drawn)}."
            )
            return verification
        verification.path.append(match)
        node, depth = match, depth + 1
    return verification


NODE_SAMPLING = Verifier(
    verify,
    exact_for=frozenset({FIXED, SAMPLED, WITH_REPLACEMENT, WITHOUT_REPLACEMENT}),
    uses_q=False,
    name="node sampling",
    says="The target draws its own token at each position; a drafted token passes if it equals that one.",
)
