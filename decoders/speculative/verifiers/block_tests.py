"""Blockwise parallel decoding's relaxed tests (Stern et al. 2018, section 5): a drafted token passes if it is
among the target's k most likely, or if its value is near that of the most likely; a number of tokens may pass
untested.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import FIXED, TokenTest, Verifier
from decoders.speculative.verifiers.relaxed import FromTarget
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.reasons import Code, Reason

Value = Callable[[int], float | None]  # of a token; None if it has none
Test = Callable[[torch.Tensor, int], tuple[bool, Reason]]  # p [V], a token -> whether it passes, and why


def in_best(count: int) -> Test:
    """The test of the target's `count` most likely tokens; 1: the exact one."""

    def test(p: torch.Tensor, token: int) -> tuple[bool, Reason]:
        rank = 1 + int((p > p[token]).sum())
        if count == 1:  # ties as greedy decoding breaks them
            rank = 1 if int(p.argmax()) == token else max(2, rank)
        return rank <= count, Reason(Code.RANK, {"rank": rank, "count": count})

    return test


def within(epsilon: float, value: Value) -> Test:
    """The test of distance, for tokens that are numbers; others pass if they are the most likely."""

    def test(p: torch.Tensor, token: int) -> tuple[bool, Reason]:
        best = int(p.argmax())
        if token == best:
            return True, Reason(Code.MOST_LIKELY_NUMBER)
        mine, theirs = value(token), value(best)
        if mine is None or theirs is None:
            return False, Reason(Code.NO_NUMBERS)
        apart = abs(mine - theirs)
        return apart <= epsilon, Reason(Code.NUMBERS_APART, {"apart": apart, "epsilon": epsilon})

    return test


@dataclass(frozen=True)
class BlockTest(FromTarget):
    """A token passes by `passes`, or as one of the first `minimum` tokens of the block, of which the first is
    the root. exact: only the most likely tokens pass.
    """

    passes: Test
    minimum: int
    exact: bool

    @property
    def exact_for(self) -> frozenset[str]:
        lossless = self.exact and self.minimum <= 1 and self.greedy
        return frozenset({FIXED}) if lossless else frozenset()

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        accepted, *reasons = self.passes(p, token)
        in_block = place.depth - place.inputs.position + 1  # from 1
        if not accepted and in_block <= self.minimum:
            accepted = True
            reasons.insert(0, Reason(Code.FIRST_OF_BLOCK, {"minimum": self.minimum}))
        return TokenTest(place.child, accepted, float(p[token]), reasons=tuple(reasons))


def block_tests(test: Test, minimum: int, temperature: float, exact: bool, says: str) -> Verifier:
    """The verifier for one test. exact: it lets only the most likely tokens pass."""
    rule = BlockTest(temperature == 0.0, test, minimum, exact)
    return by_rule(rule, *verifiers.block_test(says), relaxed_for=frozenset({FIXED}))
