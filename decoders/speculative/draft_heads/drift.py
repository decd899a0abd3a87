"""How far the features that a drafter continues with are from the target's own: recorded for every drafted
node that the target has read.

Modules that predict no features have no drift.
"""

from dataclasses import replace

import torch
from torch.nn import functional as F

from decoders.lane import Lane
from decoders.speculative.drafters.trained_head import Find, TrainedHead, from_head
from decoders.speculative.interfaces import Draft, Drafter, Seen, Shape, Verification
from decoders.trace.scores import ScoreName


def with_drift(find: Find, shape: Shape, name: str, says: str) -> Drafter:
    """As `from_head`; after each round the drift of its features is recorded."""
    head = TrainedHead(find)
    inner = from_head(find, shape, name, says, head)

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        record_drift(lane, head, draft, seen)
        inner.observe(lane, draft, verification, seen)

    return replace(inner, observe=observe)


@torch.inference_mode()
def record_drift(lane: Lane, head: TrainedHead, draft: Draft, seen: Seen) -> None:
    """Records 1 - cos between the feature that the module predicted after a node and the target's own feature
    there; `level` is the node's depth below the root. Only for nodes that both have read.
    """
    if not draft.nodes or head.module is None:
        return
    row = {node: at for at, node in enumerate(seen.nodes)}
    asked = {node: number for node, number in head.number.items() if node in row}
    features = {node: head.module.feature_at(head.memory, number) for node, number in asked.items()}
    features = {node: feature for node, feature in features.items() if feature is not None}
    if not features:
        return
    rows = [row[node] for node in features]
    streams = {layer: seen.streams[layer, rows] for layer in head.module.reads}
    true = head.module.imitated(seen.hidden[rows], streams).float()
    apart = (1.0 - F.cosine_similarity(torch.stack(list(features.values())).float(), true)).tolist()
    root = lane.tree.depths[draft.root]
    for node, value in zip(features, apart, strict=True):
        depth = lane.tree.depths[node] - root
        lane.record_measure(node, ScoreName.DRIFT, value, level=f"depth {depth}", number=depth)
