"""The rule for drawn drafts: accept with min(1, p/q), otherwise continue with the residual norm(max(p - q,
0)).

With one child per node this is the token rejection of Leviathan et al. (2023) and Chen et al. (2023); with
several children, drawn without replacement, the recursive rejection of RSD (Jeon et al. 2024) and Sequoia
(RRSw).
"""

import torch

from decoders.explain import verifiers
from decoders.logits.distributions import residual
from decoders.speculative.interfaces import SAMPLED, WITHOUT_REPLACEMENT, TokenTest
from decoders.speculative.verifiers.walk import Place, Rule, by_rule
from decoders.strategy import PartId
from decoders.trace.events import acceptance
from decoders.trace.reasons import Code, Reason


def ratio_test(p: torch.Tensor, q: torch.Tensor, token: int, place: Place) -> TokenTest:
    """Accepts iff u q(token) < p(token)."""
    p_token, q_token = float(p[token]), float(q[token])
    accepted, u = place.accept(acceptance(p_token, q_token))
    accepted = bool(accepted)
    numbers = {"p": p_token, "q": q_token, "u": u, "accepted": accepted, "slot": place.slot}
    return TokenTest(place.child, accepted, p_token, q_token, u, (Reason(Code.TOKEN_REJECTION, numbers),))


class RecursiveRejection(Rule):
    """At each node R = p and D = q; each child in slot order is accepted iff u D(x) < R(x). After a rejection
    R = norm(max(R - D, 0)), and x is struck from D. The target's own token comes from what is left of R.
    """

    exact_for = frozenset({SAMPLED, WITHOUT_REPLACEMENT})
    greedy = False
    shows_residual = True

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        return ratio_test(p, q, token, place)

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor | None:
        return residual(p, q)


RECURSIVE_REJECTION = by_rule(RecursiveRejection(), *verifiers.TOKEN_REJECTION, id=PartId.TOKEN_REJECTION)
