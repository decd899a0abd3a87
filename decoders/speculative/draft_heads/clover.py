"""Clover: Medusa's heads made sequential by an attention cell, and a tree of few nodes.

Xiao et al. (2024), Clover. The heads are heads/recurrent/clover.py, the tree drafters/cut_trees.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.gates import with_gates
from decoders.speculative.draft_heads.trees import CUTS, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import (
    TrainedHead,
    head_of_kind,
    needs_head,
    reads_states,
)
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier

SAYS = "A state of the text takes in each drafted token through a cell, and each depth has its own head."


def clover_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the heads' guesses, and its simplest exact verifier."""
    head = TrainedHead(head_of_kind("clover"))
    inner = drafted_by("clover", parameters, "Clover's heads", SAYS, head)
    return simplest(with_gates(inner, head, lambda module: module.cell), parameters["temperature"])


@draft_and_verify(
    clover_pair,
    name="clover",
    title="Clover",
    parameters=(*tree_parameters(CUTS, nodes=4, depth=3, width=3), *GREEDY),
    papers=("clover",),
    views=HEAD_VIEWS,
    reads=reads_states,
    suits=needs_head("clover", "Clover heads"),
)
def clover(lane: Lane) -> Iterator[None]:
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
    drafter, verifier, _ = clover_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
