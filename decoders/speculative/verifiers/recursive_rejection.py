"""Verifiers for drawn drafts: accept with min(1, p/q), otherwise continue with the residual norm(max(p - q,
0)).

With one child per node this is the token rejection of Leviathan et al. (2023) and Chen et al. (2023); with
several children, drawn without replacement, the recursive rejection of RSD (Jeon et al. 2024) and Sequoia
(RRSw); with replacement, that of SpecInfer and MCSD (RRS).
"""

from functools import partial

import torch

from decoders.logits.distributions import residual
from decoders.speculative.interfaces import (
    SAMPLED,
    WANTED_MORE,
    WITH_REPLACEMENT,
    WITHOUT_REPLACEMENT,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import compared, number


def verify(inputs: VerifierInput, replacement: bool = False) -> Verification:
    """At each node R = p and D = q; each child in slot order is accepted iff u D(x) < R(x).

    After a rejection R = norm(max(R - D, 0)), and x is struck from D, unless the children were drawn with
    replacement: then D is the q of the next child's own draft model. The target's own token comes from what
    is left of R.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    while node in inputs.p:
        left, drafted = inputs.p[node], inputs.draft.q.get(node)  # R, D: [V]
        match = None
        offers, draw_probs = in_order(inputs, node, depth) if replacement else (inputs.children(node), [])
        for slot, child in enumerate(offers):
            drafted = draw_probs[slot] if draw_probs else drafted
            token = inputs.tokens[child]
            p, q = float(left[token]), float(drafted[token])
            accepted, u = inputs.chooser.bernoulli(acceptance(p, q), ("accept", depth, slot))
            verification.tests.append(
                TokenTest(child, bool(accepted), p, q, u, sentence(p, q, u, bool(accepted), slot))
            )
            if accepted:
                match = child
                break
            rest = residual(left, drafted)
            if rest is None:
                verification.note = (
                    "Target and draft agree to the last digit; the target draws the next token."
                )
            left = verification.tests[-1].left = left if rest is None else rest
            drafted = drafted if replacement else without(drafted, token)
        if match is None:
            return verification.end(inputs, left, depth, WANTED_MORE if inputs.children(node) else None)
        verification.path.append(match)
        node, depth = match, depth + 1
    return verification


def in_order(inputs: VerifierInput, node: int, depth: int) -> tuple[list[int], list[torch.Tensor]]:
    """The draws below a node and their distributions [V], in the order in which they are tested: a random
    one, if they came from several draft models, so that none is preferred (SpecInfer, Algorithm 2).
    """
    offers, draw_probs = list(inputs.offers(node)), list(inputs.drawn_from(node))
    if all(q is draw_probs[0] for q in draw_probs):  # they are equal, so their order does not matter
        return offers, draw_probs
    for place in range(len(offers) - 1):
        left = torch.ones(len(offers) - place)
        chosen = place + inputs.chooser.categorical(left, ("order", depth, place)).value
        for values in (offers, draw_probs):
            values[place], values[chosen] = values[chosen], values[place]
    return offers, draw_probs


def without(weights: torch.Tensor, token: int) -> torch.Tensor:
    """A distribution [V] with `token` struck out, normalised again; all zero if nothing else had mass."""
    rest = weights.clone()
    rest[token] = 0.0
    total = rest.sum()
    return rest / total if total > 0 else rest


def sentence(p: float, q: float, u: float | None, accepted: bool, slot: int) -> str:
    """The reason, with rounded numbers that agree with each other."""
    gave = "The draft gave" if slot == 0 else "Among the tokens not yet tried the draft gave"
    wanted = "the target" if slot == 0 else "the residual of the target"
    if p <= 0.0:
        return f"{gave} {number(q)}, {wanted} nothing: it cannot be accepted."
    if p >= q:
        return f"{gave} {number(q)}, {wanted} {number(p)}, at least as much: it is always accepted."
    shown_p, shown_q, ratio, drawn = compared(p, q, u)
    comparison = f"{gave} {shown_q}, {wanted} {shown_p}: it is accepted with probability p/q = {ratio};"
    fate = "accepted" if accepted else "rejected"
    if u is None:
        return f"{comparison} {fate}."
    return f"{comparison} u = {drawn} is {'smaller' if accepted else 'larger'}: {fate}."


RECURSIVE_REJECTION = Verifier(
    verify,
    exact_for=frozenset({SAMPLED, WITHOUT_REPLACEMENT}),
    name="token rejection",
    says="A drafted token passes with probability min(1, p/q); after a rejection the next one "
    "is tested against, or drawn from, the residual max(p - q, 0).",
)
WITH_REPLACEMENT_REJECTION = Verifier(
    partial(verify, replacement=True),
    exact_for=frozenset({SAMPLED, WITH_REPLACEMENT}),
    name="token rejection with replacement",
    says="A drafted token passes with probability min(1, p/q); after a rejection the next draw, which may "
    "be the same token again, is tested against the residual max(p - q, 0).",
)
