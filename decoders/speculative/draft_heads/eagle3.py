"""EAGLE-3: a layer that reads several of the target's layers, and was trained on its own outputs.

Li et al. (2025), EAGLE-3. The layer is heads/feature_drafters/eagle3.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import DRIFT_VIEWS, with_drift
from decoders.speculative.draft_heads.trees import DYNAMIC, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head, reads_states
from decoders.speculative.interfaces import Drafter, Verifier

SAYS = "A layer that reads three of the target's layers guesses tokens from a vocabulary of its own."


def eagle3_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the layer's guesses, and its simplest exact verifier."""
    find = head_of_kind("eagle3")
    drafter = with_drift(find, tree_of(parameters, find), "an EAGLE-3 drafter", SAYS)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    eagle3_pair,
    name="eagle3",
    title="EAGLE-3",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=6, width=4), *GREEDY),
    views=DRIFT_VIEWS,
    reads=reads_states,
    suits=needs_head("eagle3", "EAGLE-3 layer"),
)
def eagle3(lane: Lane) -> Iterator[None]:
    """A layer that reads several of the target's layers drafts; it was trained on its own outputs.

    1. At each position the target's states after a low, a middle and a high layer are fused into one feature
       (on llama-tiny after 2, 6 and 9 of 12 layers).
    2. The layer reads feature and token side by side, each with a norm of its own. Its output does not
       imitate a state: its own head turns it into a distribution over a vocabulary of its own, the most
       frequent tokens, and below depth 1 it replaces the feature.
    3. The tree is EAGLE-2's. A token that the draft's vocabulary lacks is never drafted; the target can still
       write it, as its own token.
    4. One target forward reads the tree; the layer then reads the true features of what was committed.

    Training-time test: in training the layer reads its own outputs for several steps, as in drafting, and
    only the cross-entropy counts. The paper's layer has 32k of 128k tokens and is unrolled seven steps; that
    of llama-tiny has 2,048 of 4,096, three steps, and a feed-forward layer a quarter as wide as the target's.
    """
    drafter, verifier, _ = eagle3_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
