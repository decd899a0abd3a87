"""EAGLE: one decoder layer guesses the target's next state, and the target's own output matrix turns it into
tokens.

Li et al. (2024), EAGLE. The layer is heads/feature_drafters/eagle.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import DRIFT_VIEWS, with_drift
from decoders.speculative.draft_heads.trees import PUBLISHED, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head, reads_states
from decoders.speculative.interfaces import Drafter, Verifier

SAYS = "A layer predicts the target's next state, and the target's head turns it into token probabilities."


def eagle_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the layer's guesses, and its simplest exact verifier."""
    find = head_of_kind("eagle")
    drafter = with_drift(find, tree_of(parameters, find), "a feature drafter", SAYS)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    eagle_pair,
    name="eagle",
    title="EAGLE",
    parameters=(*tree_parameters(PUBLISHED, nodes=25, depth=5, width=4), *GREEDY),
    views=DRIFT_VIEWS,
    reads=reads_states,
    suits=needs_head("eagle", "EAGLE layer"),
)
def eagle(lane: Lane) -> Iterator[None]:
    """One decoder layer guesses the target's next state; the target's own head reads tokens out of it.

    1. At each position of the text the layer reads the target's state and the token that was chosen after it,
       and predicts the next state. The token resolves the uncertainty that the state alone leaves.
    2. The target's frozen head turns the state into a distribution of guesses. A guess and the state it came
       from are the layer's next input: so a tree grows, with one pass per level. Which ranks are drafted is
       fixed: 25 paths, up to five deep.
    3. One target forward reads the tree; the accepted path and the target's own token are committed.
    4. The layer's own states are dropped, and it reads the target's true states of the new tokens.

    Trees of the most likely guesses are exact at any temperature, since nothing in them is drawn; a chain is
    drawn from the layer's own distribution, and the usual test keeps it exact. On llama-tiny a chain of three
    is faster than the tree, although the tree brings more tokens per forward: a forward over 25 tokens takes
    twice as long as one over a single token. *Drift* shows how far the layer's states are from the target's:
    the deeper, the farther.
    """
    drafter, verifier, _ = eagle_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
