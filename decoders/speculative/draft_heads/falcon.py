"""Falcon: a feature drafter that guesses a block of tokens in each pass.

Gao et al. (2024), Falcon. The module is heads/feature_drafters/falcon.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import DRIFT_VIEWS, with_drift
from decoders.speculative.draft_heads.trees import MEASURED, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head, reads_states
from decoders.speculative.interfaces import Drafter, Verifier

SAYS = (
    "A layer predicts a block of states per pass, and the target's head turns them into token probabilities."
)


def falcon_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the blocks' guesses, and its simplest exact verifier."""
    find = head_of_kind("falcon")
    drafter = with_drift(find, tree_of(parameters, find), "a block drafter", SAYS)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    falcon_pair,
    name="falcon",
    title="Falcon",
    parameters=(*tree_parameters(MEASURED, nodes=4, depth=6, width=3), *GREEDY),
    papers=("falcon",),
    views=DRIFT_VIEWS,
    reads=reads_states,
    suits=needs_head("falcon", "Falcon layer"),
)
def falcon(lane: Lane) -> Iterator[None]:
    """A feature drafter that guesses k tokens per pass; on llama-tiny k is 2.

    1. Each entry reads the target's state and the token after it through an LSTM and one decoder layer, and
       predicts the target's state k positions later. The newest k entries see each other (relaxed causal
       mask), so one pass guesses the next k tokens.
    2. Within a block guesses do not see each other: all nodes of a level have the same distribution below the
       same block. A node whose depth is a multiple of k ends a block, and only there does the layer run
       again, on the block's tokens and its own predicted states; it sees the earlier blocks on the path.
    3. The tree has fixed ranks. Every k levels cost one pass.
    4. One target forward reads the tree. Where fewer than k tokens were committed, the last entries are read
       again: their block has changed.

    In training, a share of the guesses that a first pass gets wrong, falling from 0.4 to 0, is replaced by
    the right answers (coupled sequential glancing). The paper has two LSTM layers and a hand-made tree of
    eight levels; here there is one narrow LSTM layer, and the ranks that worked best in measurements.
    """
    drafter, verifier, _ = falcon_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
