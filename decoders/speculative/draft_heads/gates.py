"""The gate of each attention head of Clover's cell for a drafted token: recorded for every drafted node below
which guesses were made.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from decoders.heads.recurrent.clover import Cell, vectors
from decoders.lane import Lane
from decoders.speculative.drafters.trained_head import TrainedHead
from decoders.speculative.interfaces import Draft, Drafter, Seen, Verification

GATE = "gate"


def with_gates(inner: Drafter, head: TrainedHead, cell_of: Callable[[torch.nn.Module], Cell]) -> Drafter:
    """`inner`, which drafts with `head`, and records the cosines of its module's cell after each round."""

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        if head.module is not None:
            record_gates(lane, head, draft, cell_of(head.module))
        inner.observe(lane, draft, verification, seen)

    return replace(inner, observe=observe)


@torch.inference_mode()
def record_gates(lane: Lane, head: TrainedHead, draft: Draft, cell: Cell) -> None:
    """Records the mean cosine at each drafted node that the head has read; its parts are those of the
    attention heads.
    """
    tree, target = lane.tree, head.module.target
    asked = [node for node in draft.nodes if node in head.number]
    if not asked:
        return
    width = target.width
    above = torch.stack([head.memory.states[head.number[tree.parents[n]]][:width] for n in asked])
    tokens = torch.tensor([tree.tokens[n] for n in asked], device=above.device)
    gates = cell.gates(above, vectors(target, tokens).to(above.dtype)).float()
    for node, row in zip(asked, gates.tolist(), strict=True):
        parts = {f"head {at}": value for at, value in enumerate(row, start=1)}
        lane.record_score(node, GATE, sum(row) / len(row), **parts)
