"""Verifier of SpecTr: K-SEQ, which accepts one of several independent draws by a simple rule close to optimal
transport.

Sun et al. (2023), SpecTr: Fast Speculative Decoding via Optimal Transport, algorithm 3 and section 5.
"""

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import (
    SAMPLED,
    WITH_REPLACEMENT,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.trace.reasons import Code, Reason

HALVINGS = 60  # of the interval in which rho lies: to the last digit of a double


def division(p: torch.Tensor, q: torch.Tensor, count: int) -> tuple[float, float]:
    """(rho, beta): the smallest rho in [1, count] with 1 - (1 - beta)^count <= rho beta, where beta is the
    sum of min(q, p / rho) over [V], the probability that one draw is accepted.
    """

    def beta(rho: float) -> float:
        return float(torch.minimum(q, p / rho).sum())

    def enough(rho: float) -> bool:
        passes = beta(rho)
        return 1 - (1 - passes) ** count <= rho * passes

    low, high = 1.0, float(count)
    if enough(low):
        return low, beta(low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):  # no number lies between them
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, beta(high)


def ceiling(p: torch.Tensor, q: torch.Tensor, count: int) -> float:
    """The highest acceptance probability of any rule that preserves the distribution p [V], given `count`
    independent draws from q [V].

    By max-flow min-cut it is the minimum of p(A) + 1 - q(A)^count over all sets A. As x^count is convex, a
    set of the form {p < lambda q} attains it, so only those are tried.
    """
    order = (p / q.clamp(min=torch.finfo(q.dtype).tiny)).argsort()
    zero = p.new_zeros(1)
    kept, drawn = (torch.cat([zero, probs[order].cumsum(0)]) for probs in (p, q))
    return float((kept + 1.0 - drawn.clamp(max=1.0) ** count).min())


def verify(inputs: VerifierInput) -> Verification:
    """At each node the draws X_1..X_k in their order: X passes with min(1, p(X) / (rho q(X))). If none does,
    the target's own token comes from p minus what the draws took of it, in proportion to their probabilities.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    while node in inputs.p:
        p, q = inputs.p[node], inputs.draft.q.get(node)  # [V]
        offers, left, match = inputs.offers(node), p, None
        if offers:
            rho, beta = division(p, q, len(offers))
            took = torch.minimum(q, p / rho)
            taken = 1 - (1 - beta) ** len(offers)
            left = (p - took * (taken / beta if beta > 0 else 0.0)).clamp(min=0.0)
            if len(offers) > 1 and node == inputs.draft.root:
                bound = ceiling(p, q, len(offers))
                numbers = {"draws": len(offers), "taken": taken, "bound": bound}
                verification.note = Reason(Code.TRANSPORT_BOUND, numbers)
        for slot, child in enumerate(offers):
            token = inputs.tokens[child]
            p_token, q_token = float(p[token]), float(q[token])
            probability = min(1.0, p_token / (rho * q_token))
            accepted, u = inputs.chooser.bernoulli(probability, ("accept", depth, slot))
            numbers = {"p": p_token, "q": q_token, "rho": rho, "probability": probability}
            reason = Reason(Code.K_SEQ, numbers | {"accepted": bool(accepted)})
            watched = ("rho", rho, float(len(offers)))  # between 1 and the number of draws
            verification.tests.append(
                TokenTest(child, bool(accepted), p_token, q_token, u, (reason,), None, watched, probability)
            )
            if accepted:
                match = child
                break
        if match is None:
            if offers:
                verification.tests[-1].left = left / left.sum() if left.sum() > 0 else p
            probs = p if not offers or float(left.sum()) <= 0 else left
            code = Code.RESIDUAL_OF_TARGET if offers else Code.ALL_ACCEPTED
            return verification.end(inputs, probs, depth, code)
        verification.path.append(match)
        node, depth = match, depth + 1
    return verification


KSEQ = Verifier(verify, frozenset({SAMPLED, WITH_REPLACEMENT}), *verifiers.K_SEQ)
