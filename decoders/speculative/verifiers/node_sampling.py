"""The rule for deterministic drafts (lookup, top-k): the target draws its own token, and follows the draft if
it contains that token.

One draw per node, used in either case, gives exactly the target's distribution. A child is accepted with the
probability that the target gives to the children.
"""

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import FIXED, SAMPLED, WITH_REPLACEMENT, WITHOUT_REPLACEMENT, TokenTest
from decoders.speculative.verifiers.walk import Place, Rule, by_rule
from decoders.trace.reasons import Code, Reason


class NodeSampling(Rule):
    """A token passes if it is y, where y ~ p."""

    exact_for = frozenset({FIXED, SAMPLED, WITH_REPLACEMENT, WITHOUT_REPLACEMENT})
    greedy, tests_all = False, True

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        accepted = token == place.own(p).value
        p_token = float(p[token])
        reason = Reason(Code.DREW_IT if accepted else Code.DREW_ANOTHER, {"p": p_token})
        return TokenTest(place.child, accepted, p_token, reasons=(reason,))

    def own_code(self, whole: bool) -> Code:
        return Code.ALL_ACCEPTED if whole else Code.TARGET_NOT_DRAFTED


NODE_SAMPLING = by_rule(NodeSampling(), *verifiers.NODE_SAMPLING, uses_q=False)
