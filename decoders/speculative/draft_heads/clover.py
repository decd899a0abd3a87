"""Clover and Clover-2: Medusa's heads made sequential by an attention cell, whose gates are recorded.

Xiao et al. (2024), Clover and Clover-2. The heads are heads/recurrent/clover.py and clover2.py, Clover's tree
drafters/cut_trees.py.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from decoders.heads.recurrent.clover import Cell, vectors
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import record_drift
from decoders.speculative.draft_heads.trees import CUTS, PUBLISHED, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import TrainedHead, head_of_kind, needs_head
from decoders.speculative.interfaces import Draft, Drafter, Pair, Seen, Verification
from decoders.trace.scores import ScoreName


def with_gates(inner: Drafter, head: TrainedHead, cell_of: Callable[[torch.nn.Module], Cell]) -> Drafter:
    """`inner`, which drafts with `head`, and records the cosines of its module's cell after each round."""

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        if head.module is not None:
            record_gates(lane, head, draft, cell_of(head.module))
        inner.observe(lane, draft, verification, seen)

    return replace(inner, observe=observe)


@torch.inference_mode()
def record_gates(lane: Lane, head: TrainedHead, draft: Draft, cell: Cell) -> None:
    """Records the mean cosine of the cell's gates at each drafted node that the head has read; its parts are
    those of the attention heads.
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
        lane.record_measure(node, ScoreName.GATE, sum(row) / len(row), **parts)


@speculative(
    name="clover",
    title="Clover",
    parameters=(*tree_parameters(CUTS, nodes=4, depth=3, width=3), *GREEDY),
    papers=("clover",),
    suits=needs_head("clover", "Clover heads"),
)
def clover_pair(parameters: dict) -> Pair:
    """Heads that see the drafted path through a small attention cell, and a tree of very few nodes.

    1. One more decoder layer reads the target's states of the whole text and summarises them.
    2. A cell adds the newest token to that summary, first the root: each attention head adds the token's
       value, times the cosine of the state's query and the token's key. The score *gate* shows the cosines.
    3. Head j guesses from the state at depth j with one residual block and the target's vocabulary matrix.
    4. The tree suits large batches, where few tokens per request are affordable: a node's children are the
       smallest set with more than 0.9 in total, none below a quarter of the best; the most likely paths get
       the nodes, and nodes used on one level are not available to deeper ones.
    5. One target forward reads the tree; exact tests follow.

    The paper's layer begins as a copy of the target's last one and its cell's formula is not published; the
    cosine is that of Clover-2's code. How the levels share the nodes is our reading: each leaves one node for
    every deeper level. The layer of llama-tiny is narrow and the blocks have a low rank.
    """
    says = "A state of the text takes in each drafted token through a cell, and each depth has its own head."
    head = TrainedHead(head_of_kind("clover"))
    inner = drafted_by("clover", parameters, "Clover's heads", says, head)
    return simplest(with_gates(inner, head, lambda module: module.cell), parameters["temperature"])


@speculative(
    name="clover2",
    title="Clover-2",
    parameters=(*tree_parameters(PUBLISHED, nodes=25, depth=5, width=4), *GREEDY),
    papers=("clover-2",),
    suits=needs_head("clover2", "Clover-2 layers"),
)
def clover2_pair(parameters: dict) -> Pair:
    """A recurrent drafter that sees the root early, summarises the text in two layers and predicts features.

    1. At each position of the text a cell (Clover's) adds the token that was chosen there to the target's
       state, taken before the target's last norm. Two decoder layers read the results; their output at the
       newest position already includes the root.
    2. Depth 1 is guessed from that directly. At deeper levels a second cell adds each drafted token, and the
       map that predicts the next feature reads the token once more beside the state.
    3. The target's vocabulary matrix turns features into guesses. They are trained to be the target's own
       states and to give its distributions: *Drift* shows how far they are from it.
    4. The tree is EAGLE's, 25 nodes on five levels, and exact tests follow.

    The layers of llama-tiny are narrow, where the paper's begin as copies of the target's last one, and its
    states before the norm are so large that they are scaled by a constant.
    """
    says = "Two layers read the text and the root; a cell takes in each drafted token below it."
    head = TrainedHead(head_of_kind("clover2"))
    inner = drafted_by("clover2", parameters, "a Clover-2 drafter", says, head)
    gated = with_gates(inner, head, lambda module: module.cell_b)

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        record_drift(lane, head, draft, seen)
        gated.observe(lane, draft, verification, seen)

    return simplest(replace(gated, observe=observe), parameters["temperature"])
