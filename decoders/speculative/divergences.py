"""How far a draft's distribution q is from the target's p: what distillation minimises.

Zhou et al. (2023), DistillSpec, section 3: a drafted token is accepted with probability 1 - TV(p, q), so the
total variation distance is what counts; the others are easier to minimise.
"""

import math
from collections.abc import Callable
from functools import partial

import torch

from decoders.refusal import Refusal

Divergence = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # logits of p and q [..., V] -> nats [...]


def forward_kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) [...] of two tensors of logits [..., V]."""
    logp, logq = p.log_softmax(-1), q.log_softmax(-1)
    return (logp.exp() * (logp - logq)).sum(-1)


def reverse_kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(q || p) [...]."""
    return forward_kl(q, p)


def jsd(p: torch.Tensor, q: torch.Tensor, beta: float = 0.5) -> torch.Tensor:
    """beta KL(p || m) + (1 - beta) KL(q || m) [...], with m = beta p + (1 - beta) q and 0 < beta < 1."""
    logp, logq = p.log_softmax(-1), q.log_softmax(-1)
    logm = torch.logaddexp(logp + math.log(beta), logq + math.log1p(-beta))
    of_p, of_q = (logp.exp() * (logp - logm)).sum(-1), (logq.exp() * (logq - logm)).sum(-1)
    return beta * of_p + (1 - beta) * of_q


def tvd(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Total variation [...], half the sum of |p - q|: 1 minus the acceptance rate."""
    return 0.5 * (p.softmax(-1) - q.softmax(-1)).abs().sum(-1)


DIVERGENCES: dict[str, Divergence] = {
    "forward KL": forward_kl,
    "reverse KL": reverse_kl,
    "JSD 0.5": jsd,
    "JSD 0.1": partial(jsd, beta=0.1),
    "JSD 0.9": partial(jsd, beta=0.9),
    "TVD": tvd,
}


def divergence_named(name: str) -> Divergence:
    """One of DIVERGENCES. Raises Refusal with one sentence if there is none of this name."""
    if name not in DIVERGENCES:
        raise Refusal(f"There is no divergence {name!r}; choose one of: {', '.join(DIVERGENCES)}.")
    return DIVERGENCES[name]
