"""Attention in parts: exact from several disjoint sets of keys, by their log-sum-exp.

Queries are [H, N, D], keys and values [Hkv, K, D], with H a multiple of Hkv.
"""

import torch
from torch.nn import functional as F

Part = tuple[torch.Tensor, torch.Tensor]  # outputs [H, N, D] and log-sum-exp [H, N] of one set of keys


def logits_of(q: torch.Tensor, k: torch.Tensor, scaling: float) -> torch.Tensor:
    """Scaled products [H, N, K] of queries with the keys of their group."""
    heads, rows, width = q.shape
    grouped = (q * scaling).reshape(k.shape[0], -1, width)  # [Hkv, G N, D]
    return (grouped @ k.mT).view(heads, rows, -1)


def weighted(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Sums [H, N, D] of values under weights [H, N, K]."""
    heads, rows, count = weights.shape
    return (weights.reshape(v.shape[0], -1, count) @ v).view(heads, rows, -1)


def attention_part(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor, scaling: float
) -> Part:
    """Attention to one set of keys. bias: additive, to be broadcast to [H, N, K]; -inf hides. A row that sees
    none of them has output 0 and log-sum-exp -inf.
    """
    logits = logits_of(q, k, scaling) + bias
    lse = logits.logsumexp(-1)
    weights = torch.exp(logits - lse.where(lse > -torch.inf, torch.zeros_like(lse))[..., None])
    return weighted(weights, v), lse


def merge_lse(parts: list[Part]) -> torch.Tensor:
    """One softmax over all parts' keys: [H, N, D]. With M the largest log-sum-exp, part k weighs
    exp(lse_k - M).
    """
    lse = torch.stack([one for _, one in parts])  # [P, H, N]
    top = lse.amax(0)
    weights = torch.exp(lse - top.where(top > -torch.inf, torch.zeros_like(top)))
    total = sum(weight[..., None] * out for weight, (out, _) in zip(weights, parts, strict=True))
    return total / weights.sum(0).clamp(min=torch.finfo(lse.dtype).tiny)[..., None]


def dense(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    scaling: float,
) -> torch.Tensor:
    """What the engine computes without a memory [1, H, N, D], from q [1, H, N, D], k and v [1, Hkv, K, D],
    and mask [1, 1, N, K]; bias [Hkv, K] is added per head.
    """
    if bias is not None:
        every = bias.repeat_interleave(q.shape[1] // bias.shape[0], 0)[None, :, None]  # [1, H, 1, K]
        mask = every.expand(-1, -1, q.shape[2], -1) if mask is None else mask + every
    gqa = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling, enable_gqa=gqa)
