"""EAGLE-2: EAGLE's layer, and a tree that grows where the layer itself is confident.

Li et al. (2024), EAGLE-2. The layer is heads/feature_drafters/eagle.py, the tree drafters/dynamic_trees.py's
`expand_and_rerank`.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_heads.drift import DRIFT_VIEWS
from decoders.speculative.draft_heads.eagle import eagle_pair
from decoders.speculative.draft_heads.trees import DYNAMIC, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import needs_head, reads_states


@draft_and_verify(
    eagle_pair,
    name="eagle2",
    title="EAGLE-2",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=6, width=4), *GREEDY),
    views=DRIFT_VIEWS,
    reads=reads_states,
    suits=needs_head("eagle", "EAGLE layer"),
)
def eagle2(lane: Lane) -> Iterator[None]:
    """EAGLE's layer drafts a tree that grows where the layer itself is confident.

    1. The value of a node is the product of the layer's probabilities on its path. They are well calibrated,
       so this is roughly the probability that the target gets there.
    2. Expand: on each level the width best nodes get width children each. All of them are candidates.
    3. Rerank: the best `nodes` candidates of all levels form the tree, ties going to the shallower; no
       child has a higher value than its parent.
    4. One target forward reads the tree. Nothing in it was drawn, so any temperature is exact.

    The paper's trees have 60 nodes for a 7B model, ten children and six to eight levels; here they are
    smaller, for a target whose forward costs little more than the layer's.
    """
    drafter, verifier, _ = eagle_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
