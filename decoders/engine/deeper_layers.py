"""Runs nodes that only the first layers have read through further layers, so that keys and values are
computed lazily after early exits.
"""

from dataclasses import replace
from typing import Any

import torch

from decoders.engine.forward_outputs import Early
from decoders.engine.layers import Layers


def deepen(scorer: Any, nodes: list[int], count: int) -> torch.Tensor:
    """One forward that takes `nodes` further towards having been read by the first `count` layers. Returns
    logits [N, V] after those of `nodes` that took part.

    Of all nodes on their paths, those that stopped earliest run on to the layer where the next ones stopped
    (S2D, 2024); call again until `scorer.layers_read` says that all of `nodes` are there. Positions, keys and
    values are those of a full run, and nodes that reach the last layer count as fully read. Raises ValueError
    if a node on a path has not been read, or by other layers than the first.
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
