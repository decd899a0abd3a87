"""Clover-2: the root enters before the layers that summarise the text, and features are predicted, as in
EAGLE.

Xiao et al. (2024), Clover-2. The module is heads/recurrent/clover2.py.
"""

from collections.abc import Iterator
from dataclasses import replace

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import DRIFT_VIEWS, record_drift
from decoders.speculative.draft_heads.gates import with_gates
from decoders.speculative.draft_heads.trees import PUBLISHED, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import (
    TrainedHead,
    head_of_kind,
    needs_head,
    reads_states,
)
from decoders.speculative.interfaces import Draft, Drafter, Seen, Verification, Verifier

SAYS = "Two layers read the text and the root; a cell takes in each drafted token below it."


def clover2_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the module's guesses, and its simplest exact verifier."""
    head = TrainedHead(head_of_kind("clover2"))
    inner = drafted_by("clover2", parameters, "a Clover-2 drafter", SAYS, head)
    gated = with_gates(inner, head, lambda module: module.cell_b)

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        record_drift(lane, head, draft, seen)
        gated.observe(lane, draft, verification, seen)

    return simplest(replace(gated, observe=observe), parameters["temperature"])


@draft_and_verify(
    clover2_pair,
    name="clover2",
    title="Clover-2",
    parameters=(*tree_parameters(PUBLISHED, nodes=25, depth=5, width=4), *GREEDY),
    papers=("clover-2",),
    views=DRIFT_VIEWS,
    reads=reads_states,
    suits=needs_head("clover2", "Clover-2 layers"),
)
def clover2(lane: Lane) -> Iterator[None]:
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
    drafter, verifier, _ = clover2_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
