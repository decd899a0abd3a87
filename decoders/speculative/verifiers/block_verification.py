"""Block verification: a chain is verified as a whole, so a poor token may be kept for good ones after it.

Sun et al. (2025), Block Verification Accelerates Speculative Decoding, algorithm 2. It never accepts fewer
tokens on average than token rejection does.
"""

import torch

from decoders.explain import verifiers
from decoders.speculative.interfaces import SAMPLED, TokenTest, Verification, Verifier, VerifierInput
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName


def verify(inputs: VerifierInput) -> Verification:
    """P_i = min(P_(i-1) p_i(x_i) / q_i(x_i), 1). Each prefix of the chain is tested with its probability h_i,
    and the longest that passes is kept, whether or not shorter ones did. The target's own token comes from
    norm(max(P_i p - q, 0)), after the whole chain from p.
    """
    chain, compared, tests = chain_of(inputs), [], []
    weights = [1.0]  # P_i
    for i, (parent, node) in enumerate(zip(chain, chain[1:], strict=False), 1):
        token = inputs.tokens[node]
        p, q = float(inputs.p[parent][token]), float(inputs.draft.q[parent][token])
        weights.append(min(weights[-1] * p / q, 1.0))
        probability = passing(inputs, node, weights[-1])
        compared.append((p, q))
        tests.append((probability, *inputs.chooser.bernoulli(probability, ("accept", inputs.position, i))))
    kept = max((i for i, (_, passed, _) in enumerate(tests, 1) if passed), default=0)
    verification = Verification(path=chain[1 : kept + 1])
    for i, ((p, q), (probability, passed, u)) in enumerate(zip(compared, tests, strict=True), 1):
        numbers = {"length": i, "kept": kept, "weight": weights[i], "probability": probability}
        reason = Reason(Code.BLOCK, numbers | {"passed": bool(passed)})
        watched = (ScoreName.WEIGHT, weights[i], 1.0)  # 1 as long as nothing has been lost
        verification.tests.append(
            TokenTest(chain[i], i <= kept, p, q, u, (reason,), None, watched, probability)
        )
    end = chain[kept]
    if end not in inputs.p:
        return verification  # an end-of-text token
    left = wanted(inputs, end, weights[kept])
    probs = inputs.p[end] if left is None or float(left.sum()) <= 0 else left
    code = Code.ALL_ACCEPTED if left is None else Code.RESIDUAL
    return verification.end(inputs, probs, inputs.position + kept + 1, code)


def chain_of(inputs: VerifierInput) -> list[int]:
    """The root and the drafted nodes below it, one per level."""
    chain = [inputs.draft.root]
    while below := inputs.children(chain[-1]):
        chain += below
    return chain


def passing(inputs: VerifierInput, node: int, weight: float) -> float:
    """h: the probability that the prefix that ends in `node` and weighs P passes: S / (S + 1 - P), where S
    is the mass of max(P p - q, 0); P itself where nothing was drafted after it.
    """
    left = wanted(inputs, node, weight)
    if left is None:
        return weight
    mass = float(left.sum())
    return mass / (mass + 1.0 - weight) if mass + 1.0 - weight > 0 else 1.0


def wanted(inputs: VerifierInput, node: int, weight: float) -> torch.Tensor | None:
    """max(weight p - q, 0) [V] after `node`; None where nothing was drafted."""
    q = inputs.draft.q.get(node)
    if q is None or node not in inputs.p or not inputs.children(node):
        return None
    return (weight * inputs.p[node] - q).clamp(min=0.0)


BLOCK = Verifier(verify, frozenset({SAMPLED}), *verifiers.BLOCK)
