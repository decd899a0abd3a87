"""The rule for temperature 0: follows the target's most likely tokens as long as they were drafted. Draws
nothing, and the output is that of greedy decoding.
"""

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import FIXED, TokenTest
from decoders.speculative.verifiers.walk import Place, Rule, by_rule
from decoders.strategy import PartId
from decoders.trace.reasons import Code, Reason


class GreedyMatch(Rule):
    """A token passes if it is argmax p."""

    exact_for = frozenset({FIXED})
    greedy = True

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        best = place.own(p).value
        if token == best:
            return TokenTest(place.child, True, reasons=(Reason(Code.MOST_LIKELY),))
        preferred = Reason(Code.OTHER_PREFERRED, {"preferred": best})
        return TokenTest(place.child, False, reasons=(preferred,))

    def own_code(self, whole: bool) -> Code:
        return Code.ARGMAX_AFTER_ALL if whole else Code.ARGMAX_NOT_DRAFTED


GREEDY_MATCH = by_rule(
    GreedyMatch(), *verifiers.GREEDY_MATCH, id=PartId.GREEDY_MATCH, draws=False, uses_q=False
)
