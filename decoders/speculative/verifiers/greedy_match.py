"""Verifier for temperature 0: follows the target's most likely tokens as long as they were drafted. Draws
nothing.
"""

from decoders.speculative.interfaces import FIXED, TokenTest, Verification, Verifier, VerifierInput


def verify(inputs: VerifierInput) -> Verification:
    """From the root down, the child that carries argmax p; at the end argmax p itself, so the output is that
    of greedy decoding.
    """
    verification, node = Verification(), inputs.draft.root
    while node in inputs.p:
        favourite = int(inputs.p[node].argmax())
        children = inputs.children(node)
        match = None
        for child in children:
            if inputs.tokens[child] == favourite:
                verification.tests.append(
                    TokenTest(child, True, reason="Accepted: it is the target's most likely token.")
                )
                match = child
                break
            verification.tests.append(
                TokenTest(
                    child, False, reason="Rejected: the target prefers another token.", preferred=favourite
                )
            )
        if match is None:
            verification.token = favourite
            verification.reason = (
                "The target's most likely token here; it was not drafted."
                if children
                else "All drafted tokens were accepted; the target adds its most likely one."
            )
            return verification
        verification.path.append(match)
        node = match
    return verification


GREEDY_MATCH = Verifier(
    verify,
    exact_for=frozenset({FIXED}),
    draws=False,
    uses_q=False,
    name="greedy match",
    says="A drafted token passes if it is the target's most likely token at its position; otherwise that "
    "token is written.",
)
