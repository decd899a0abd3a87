"""What relaxed verifiers share: the walk down a draft, and the target's own token at its end. Knows no rule.

They keep more of the draft than an exact verifier would, at the price of the target's distribution.
"""

from collections.abc import Callable

import torch

from decoders.speculative.interfaces import TokenTest, Verification, VerifierInput

OWN = "Drawn from the target's distribution, where it has probability {}."
# (inputs, node, drafted child, (depth, slot)) -> the child's test
Rule = Callable[[VerifierInput, int, int, tuple[int, int]], TokenTest]


def go_down(
    inputs: VerifierInput,
    rule: Rule,
    left: Callable[[VerifierInput, int], torch.Tensor],
    drawn: str,
    greedy: bool,
) -> Verification:
    """From the root down: at each node the first child in slot order that passes `rule` is kept.

    `left(inputs, node)` gives the distribution [V] from which the target's own token is drawn after a
    rejection, `drawn` names it in words; `greedy`: the own token is the target's most likely one instead.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    while node in inputs.p:
        match = None
        for slot, child in enumerate(inputs.children(node)):
            verification.tests.append(rule(inputs, node, child, (depth, slot)))
            if verification.tests[-1].accepted:
                match = child
                break
        if match is None:
            return own_token(verification, inputs, node, left, drawn, greedy)
        verification.path.append(match)
        node, depth = match, depth + 1
    return verification


def relaxed_distribution(passes: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """The distribution [V] that a token has: `passes` [V] is how likely each token is drafted and passes, the
    rest is drawn from `left` [V].
    """
    return passes + (1.0 - passes.sum()).clamp(min=0.0) * left


def own_token(
    verification: Verification,
    inputs: VerifierInput,
    node: int,
    left: Callable[[VerifierInput, int], torch.Tensor],
    drawn: str,
    greedy: bool,
) -> Verification:
    """Ends the walk at `node` with the target's own token."""
    children, depth = inputs.children(node), inputs.position + len(verification.path) + 1
    if greedy:
        verification.token = int(inputs.p[node].argmax())
        here = "here; the drafted one did not pass." if children else "after a fully accepted draft."
        verification.reason = f"The target's most likely token {here}"
        return verification
    return (
        verification.end(inputs, left(inputs, node), depth, drawn)
        if children
        else verification.end(inputs, inputs.p[node], depth, None)
    )
