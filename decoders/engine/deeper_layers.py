"""Runs nodes that only the first layers have read through further layers: lazy keys and values for early
exits.

Knows one lane's view of an engine; no strategy.
"""

from dataclasses import replace
from typing import Any

import torch

from decoders.engine.forward_outputs import Early
from decoders.engine.layers import Layers


def deepen(scorer: Any, nodes: list[int], count: int) -> torch.Tensor:
    """Logits [N, V] of an `engine.Scorer` after those of `nodes` that ran through one more stretch of layers,
    on the way to `count` of them at nodes that fewer of the first layers have read.

    Of the nodes on their paths those that stopped earliest run up to where the next ones stopped, in one
    forward (S2D, 2024). Positions, keys and values are those of a full run; what reaches the last layer is
    whole. `scorer.layers_read` says whether a node has got as far as was asked. Raises ValueError if
    something on a path was read by nothing, or by other layers.
    """
    behind: dict[int, list[int]] = {}
    tree = scorer.tree
    for one in sorted({one for node in nodes for one in tree.path(node)[tree.trunk :]}):  # parents first
        behind.setdefault(scorer.layers_read(one) or 0, []).append(one)
    begin, *later = sorted(depth for depth in behind if depth < count)
    if begin == 0:
        raise ValueError("Only what the first layers have read can go through further layers.")
    group, end, total = behind[begin], min([*later, count]), scorer.engine.layer_count
    part = Layers.only(range(begin, end), total)
    old = [scorer.early[one] for one in group]
    asked = [one for one in nodes if one in group] or group[-1:]
    batch = scorer._forward(group, asked, False, part, torch.stack([early.stream for early in old]))
    for row, (one, early) in enumerate(zip(group, old, strict=True)):
        queries = None
        if batch.queries is not None and early.queries is not None:
            queries = torch.cat([early.queries, batch.queries[:, :, row]])
        scorer.early[one] = Early(end, batch.stream[row], queries)
        if end == total:
            del scorer.early[one]
    earlier = len(group) - len(asked)
    scope = f"with {earlier} earlier, {part}" if earlier else str(part)
    work = {"tokens": len(group), "shared": 0, "rows": len(asked), "share": part.share}
    scorer.work = replace(scorer.work, **work, scope=scope)
    return batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()
