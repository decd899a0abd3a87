"""Blockwise parallel decoding's relaxed tests (Stern et al. 2018, section 5): a drafted token passes if it is
among the target's k most likely, or if its value is near that of the most likely; a number of tokens may pass
untested. Knows tokens' values only through a function.
"""

from collections.abc import Callable

from decoders.speculative.interfaces import FIXED, TokenTest, Verification, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed_walk import OWN, go_down
from decoders.trace.number_format import number

Value = Callable[[int], float | None]  # of a token; None if it has none


def in_best(count: int) -> Callable[[VerifierInput, int, int], tuple[bool, str]]:
    """The test of the target's `count` most likely tokens; 1: the exact one."""

    def test(inputs: VerifierInput, node: int, token: int) -> tuple[bool, str]:
        p = inputs.probs[node]
        rank = 1 + int((p > p[token]).sum())
        if count == 1:  # ties as greedy decoding breaks them
            rank = 1 if int(p.argmax()) == token else max(2, rank)
        which = "the target's most likely token" if count == 1 else f"among the target's {count} most likely"
        return rank <= count, f"It is {'' if rank <= count else 'not '}{which}: its rank is {rank}."

    return test


def within(epsilon: float, value: Value) -> Callable[[VerifierInput, int, int], tuple[bool, str]]:
    """The test of distance, for tokens that are numbers; others pass if they are the most likely."""

    def test(inputs: VerifierInput, node: int, token: int) -> tuple[bool, str]:
        best = int(inputs.probs[node].argmax())
        if token == best:
            return True, "It is the target's most likely token."
        mine, theirs = value(token), value(best)
        if mine is None or theirs is None:
            return False, "It is not the target's most likely token, and not both are numbers."
        apart = abs(mine - theirs)
        return apart <= epsilon, (
            f"It is {number(apart)} away from the target's most likely number; {number(epsilon)} is allowed."
        )

    return test


def block_tests(
    test: Callable[[VerifierInput, int, int], tuple[bool, str]],
    minimum: int,
    temperature: float,
    exact: bool,
    says: str,
) -> Verifier:
    """A drafted token passes by `test(inputs, place, token)`, or as one of the first `minimum` tokens of the
    block, of which the first is the root; after the first that does not, the target's own token comes from p.
    exact: the test lets only the most likely tokens pass.
    """

    def rule(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token, place = inputs.tokens[child], at[0] - inputs.position + 1  # in the block, from 1
        passes, reason = test(inputs, node, token)
        if not passes and place <= minimum:
            passes, reason = True, f"The first {minimum} tokens of a block pass. {reason}"
        return TokenTest(child, passes, float(inputs.probs[node][token]), reason=reason)

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, rule, lambda q, node: q.p[node], OWN, temperature == 0.0)

    lossless = exact and minimum <= 1 and temperature == 0.0
    return Verifier(
        verify,
        frozenset({FIXED}) if lossless else frozenset(),
        name="block test",
        relaxed_for=frozenset({FIXED}),
        says=says,
    )
