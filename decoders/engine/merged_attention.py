"""Exact attention in parts: each part of the keys gives an output and a log-sum-exp, and merging the parts
gives the attention over all keys (Hydragen: Juravsky et al., 2024, section 3).

A prefix that rows share is read once, by the queries of all rows together; so is each segment of a token
tree.
"""

from collections.abc import Sequence

import torch

Part = tuple[
    torch.Tensor, torch.Tensor
]  # outputs [..., Q, V]; of each the log-sum-exp of its logits [..., Q]


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor | None = None, scale: float = 0.0
) -> Part:
    """Attention of q [B, H, Q, D] over k [B, G, N, D] and v [B, G, N, V]; H is a multiple of G, as in grouped
    queries. seen [Q, N] is True where a query sees a key; None: all see all. scale 0: 1 / sqrt(D).

    A query that sees nothing gets output 0 and log-sum-exp -inf.
    """
    rows, heads, queries, size = q.shape
    grouped = q.reshape(rows, k.shape[1], -1, size)  # the heads that share keys, one below the other
    logits = grouped @ k.transpose(-1, -2) * (scale or size**-0.5)
    logits = logits.view(rows, heads, queries, k.shape[2])
    if seen is not None:
        logits = logits.masked_fill(~seen, -torch.inf)
    lse = logits.logsumexp(-1)
    weights = (logits - finite(lse)[..., None]).exp()
    out = weights.reshape(*grouped.shape[:3], -1) @ v
    return out.view(rows, heads, queries, v.shape[-1]), lse


def finite(lse: torch.Tensor) -> torch.Tensor:
    """`lse` with 0 in place of -inf, so that subtracting it gives no NaN."""
    return lse.masked_fill(lse == -torch.inf, 0.0)


def merge_lse(parts: Sequence[Part]) -> Part:
    """The attention over the keys of all parts, which must be disjoint: outputs are weighted by exp(lse - M),
    with M the largest log-sum-exp. The result is a part again, so merges can be merged. A part in which a
    query sees nothing has weight 0. Raises ValueError if there is no part.
    """
    if not parts:
        raise ValueError("There is no part to merge; give at least one.")
    lse = torch.stack([part[1] for part in parts])
    weights = (lse - finite(lse.amax(0))).exp()
    total = weights.sum(0)
    outputs = torch.stack([part[0] for part in parts])
    out = (weights[..., None] * outputs).sum(0) / total.masked_fill(total == 0, 1.0)[..., None]
    return out, lse.logsumexp(0)


def prefix_part(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Part:
    """The part of shared prefixes k, v [S, G, P, D]: the first B / S rows of q [B, H, Q, D] share the first
    prefix, the next B / S the second, and so on. Their queries form one block, so each prefix is read once.
    Raises ValueError if B is not a multiple of S.
    """
    rows, heads, queries, size = q.shape
    if rows % len(k):
        raise ValueError(
            f"{rows} rows cannot share {len(k)} prefixes equally; give a multiple of {len(k)} rows."
        )
    each = rows // len(k)
    block = q.view(len(k), each, heads, queries, size).transpose(1, 2).reshape(len(k), heads, -1, size)
    out, lse = attend(block, k, v)
    out = out.view(len(k), heads, each, queries, -1).transpose(1, 2).reshape(rows, heads, queries, -1)
    return out, lse.view(len(k), heads, each, queries).transpose(1, 2).reshape(rows, heads, queries)


def shared_prefix_attention(
    q: torch.Tensor, prefix: tuple[torch.Tensor, torch.Tensor], suffix: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Attention [B, H, Q, V] of the last Q tokens of B rows: all see their prefix, keys and values
    [S, G, P, D], and causally their own suffix [B, G, N, D], whose last Q tokens are theirs. N may be 0.
    """
    shared = prefix_part(q, *prefix)
    queries, own = q.shape[2], suffix[0].shape[2]
    if own == 0:
        return shared[0]
    seen = torch.ones(queries, own, dtype=torch.bool, device=q.device).tril(own - queries)
    return merge_lse([shared, attend(q, *suffix, seen if queries > 1 else None)])[0]


def segments(parents: Sequence[int]) -> list[list[int]]:
    """The unbranched segments of a tree, in the order of their first nodes. parents: each node's parent,
    which comes before it; -1 for a root.
    """
    children = [0] * len(parents)
    for parent in parents:
        if parent >= 0:
            children[parent] += 1
    stretches: list[list[int]] = []
    home: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        if parent >= 0 and children[parent] == 1:
            home[node] = home[parent]
        else:
            home[node] = []
            stretches.append(home[node])
        home[node].append(node)
    return stretches


def tree_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, parents: Sequence[int]
) -> tuple[torch.Tensor, int]:
    """(attention [B, H, N, V] of all nodes of a tree over themselves and their ancestors, number of keys read
    per row). Segment by segment: its own nodes see it causally, those below see all of it.
    """
    out = v.new_zeros(*q.shape[:3], v.shape[-1])
    lse = q.new_full(q.shape[:3], -torch.inf)
    read = 0
    for segment in segments(parents):
        inside = set(segment)  # the segment and all its descendants
        for node in range(segment[0], len(parents)):
            if parents[node] in inside:
                inside.add(node)
        below = sorted(inside)
        place = {node: at for at, node in enumerate(segment)}
        last = torch.tensor([place.get(node, len(segment) - 1) for node in below], device=q.device)
        seen = torch.arange(len(segment), device=q.device) <= last[:, None]
        part = attend(q[:, :, below], k[:, :, segment], v[:, :, segment], seen)
        out[:, :, below], lse[:, :, below] = merge_lse([(out[:, :, below], lse[:, :, below]), part])
        read += len(segment)
    return out, read


def rows_read(*keys: torch.Tensor) -> int:
    """How many keys of a head are read when each of these key tensors [B, G, N, D] is read once."""
    return sum(one.shape[0] * one.shape[2] for one in keys)
