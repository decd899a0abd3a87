"""How nodes that the first layers have read go through more of them: lazy keys and values of early exits.

Knows one lane's view of an engine, whose parts it stands beside; no strategy.
"""

from dataclasses import replace
from typing import Any

import torch

from decoders.engine.forward_outputs import Early
from decoders.engine.partial_forward import Layers


def deepen(scorer: Any, node: int, count: int) -> torch.Tensor:
    """Logits [N, V] of an `engine.Scorer`, after one more stretch of layers, on the way to `count` of them at
    a node that fewer of the first layers have read; the last row is the node's, if it is there.

    Of the nodes on its path those that stopped earliest run up to where the next ones stopped, in one forward
    (S2D, 2024). Positions, keys and values are those of a full run; what reaches the last layer is whole.
    `scorer.layers_read` says whether the node has got as far as was asked. Raises ValueError if something on
    its path was read by nothing, or by other layers.
    """
    behind: dict[int, list[int]] = {}
    for one in scorer.tree.path(node)[scorer.tree.trunk :]:
        behind.setdefault(scorer.layers_read(one) or 0, []).append(one)
    begin, *later = sorted(depth for depth in behind if depth < count)
    if begin == 0:
        raise ValueError("Only what the first layers have read can go through further layers.")
    group, end, total = behind[begin], min([*later, count]), scorer.engine.layer_count
    part = Layers.only(range(begin, end), total)
    old = [scorer.early[one] for one in group]
    batch = scorer._forward(group, group, False, part, torch.stack([early.stream for early in old]))
    for row, (one, early) in enumerate(zip(group, old, strict=True)):
        queries = None
        if batch.queries is not None and early.queries is not None:
            queries = torch.cat([early.queries, batch.queries[:, :, row]])
        scorer.early[one] = Early(end, batch.stream[row], queries)
        if end == total:
            del scorer.early[one]
    scope = f"with {len(group) - 1} earlier, {part}" if len(group) > 1 else str(part)
    scorer.work = replace(scorer.work, tokens=len(group), shared=0, rows=1, share=part.share, scope=scope)
    return batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()
